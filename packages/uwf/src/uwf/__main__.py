"""`python -m uwf`."""

import os
import sys
from contextlib import suppress

with suppress(OSError):  # the folder was deleted
    if sys.path and sys.path[0] == os.getcwd():
        del sys.path[0]  # as for `uwf`: what lies in this folder is no installed module

from uwf._entry import main

sys.exit(main())
