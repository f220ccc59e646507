"""``python -m dy2static``: the command line."""
import sys

from dy2static.cli import main

sys.exit(main())
