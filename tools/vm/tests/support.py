"""Makes the modules of tools/vm importable for the tests beside this file."""

import sys
from pathlib import Path

VM = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(VM))
