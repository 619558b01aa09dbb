"""Files of the timeline: states of instants, plans and outcomes, archives, and where each table version has them."""
