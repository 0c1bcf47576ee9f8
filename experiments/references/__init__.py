"""Independent references: motions integrated from event to event, without any use of nsjax."""
