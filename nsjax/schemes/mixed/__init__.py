"""The mixed framework: a base step, then an impulsive correction; base schemes beside the machinery."""
