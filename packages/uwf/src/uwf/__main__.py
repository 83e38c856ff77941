"""`python -m uwf`."""

import sys

from uwf._entry import main

sys.exit(main())
