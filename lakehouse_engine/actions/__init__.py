"""Changes to a table. Every action is planned on the driver from a `TableState`, executed by tasks, and published by `transaction`."""
