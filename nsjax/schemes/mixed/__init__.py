"""The mixed framework: a base step, then an impulsive correction; with its base schemes."""
