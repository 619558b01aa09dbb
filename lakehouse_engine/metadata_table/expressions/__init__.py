"""Expression indexes: functions of Spark over one column, computed without Spark, and their records."""
