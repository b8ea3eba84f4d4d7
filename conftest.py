"""What pytest leaves out, and that what is compiled is kept.

The modules of a client that is not installed are left out (AMQP's has to be built, and may be missing). Every other
module has to be importable: one that is not is an error, never a skip.
"""

import os
import sys
from importlib.util import find_spec

_AMQP = ["src/signalbook/clients/amqp.py"]
collect_ignore = [] if find_spec("proton") else _AMQP
# Where the environment forbids it, each of the hundreds of processes that tests start would compile all it imports.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
