"""Tables of wrong input, each with the sentence that it gets; nothing here runs a compiled time loop."""
