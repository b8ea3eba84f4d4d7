"""`python -m signalbook.demo`."""

import sys

from signalbook.demo import main

if __name__ == "__main__":
    sys.exit(main())
