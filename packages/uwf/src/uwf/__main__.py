"""`python -m uwf`."""

import sys

from uwf._main import main

sys.exit(main())
