"""`python -m local.emulator`: see `launcher`."""

import sys

from local.emulator.launcher import main

sys.exit(main())
