import os
import sys
import old_dep
