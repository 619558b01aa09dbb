"""Tables as DataFrames: plans of reading over files that Spark reads itself, and over what it cannot."""
