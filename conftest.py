"""What pytest leaves out: the modules of a client that is not installed (AMQP's has to be built, and may be missing).

Every other module has to be importable: one that is not is an error, never a skip.
"""

from importlib.util import find_spec

_AMQP = ["src/signalbook/clients/amqp.py"]
collect_ignore = [] if find_spec("proton") else _AMQP
