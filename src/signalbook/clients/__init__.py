"""Between the message on paper and the objects of the real clients, one module a client.

    http    httpx requests and responses, ASGI     pip install 'signalbook[http]'
    kafka   confluent-kafka                        pip install 'signalbook[kafka]'
    amqp    python-qpid-proton (AMQP 1.0)          pip install 'signalbook[amqp]'
    mqtt    paho-mqtt (5.0 and 3.1.1)              pip install 'signalbook[mqtt]'
    nats    nats-py                                pip install 'signalbook[nats]'

Rule 1: a module imports its client's library and nothing else does; this package needs none of them.
Rule 2: what a client shows is put on paper as it is; what it could not send so that it arrives the same is a
`WireError`, before anything is sent.
"""
