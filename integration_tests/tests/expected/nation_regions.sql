select n_nationkey as nation_key, n_name as nation, r_name as region from tpch_nation join tpch_region on r_regionkey = n_regionkey
