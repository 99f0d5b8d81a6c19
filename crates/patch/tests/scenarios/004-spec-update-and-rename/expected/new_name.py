import os
import sys
import new_dep
