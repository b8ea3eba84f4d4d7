"""`python -m signalbook` is the command `signalbook`."""

import sys

from signalbook.cli import main

if __name__ == "__main__":
    sys.exit(main())
