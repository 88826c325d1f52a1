"""Where Slipstream.app begins: the launcher of the bundle runs this package."""

import sys

from app.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
