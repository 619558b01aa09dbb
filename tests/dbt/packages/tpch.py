"""A few rows of TPC-H's tables as seeds, for a project that reads them as sources: one day of orders, of which the parts repeat."""

from __future__ import annotations

from collections.abc import Iterable

DAY = "1992-01-08"
_REGIONS, _NATIONS, _CUSTOMERS, _SUPPLIERS, _PARTS, _ORDERS, _LINES = 2, 4, 5, 3, 6, 8, 3


def seeds() -> dict[str, str]:
    """By their path in a project, the tables as CSV."""
    return {f"seeds/{name}.csv": "\n".join([header, *rows]) + "\n" for name, (header, rows) in _tables().items()}


def _tables() -> dict[str, tuple[str, Iterable[str]]]:
    orders = range(1, _ORDERS + 1)
    return {
        "REGION": ("R_REGIONKEY,R_NAME,R_COMMENT", [f"{key},region {key},c" for key in range(_REGIONS)]),
        "NATION": ("N_NATIONKEY,N_NAME,N_REGIONKEY,N_COMMENT", [f"{key},nation {key},{key % _REGIONS},c" for key in range(_NATIONS)]),
        "CUSTOMER": (
            "C_CUSTKEY,C_NAME,C_ADDRESS,C_NATIONKEY,C_PHONE,C_ACCTBAL,C_MKTSEGMENT,C_COMMENT",
            [f"{key},customer {key},street {key},{key % _NATIONS},0{key},{key}.5,BUILDING," for key in range(_CUSTOMERS)],
        ),
        "SUPPLIER": (
            "S_SUPPKEY,S_NAME,S_ADDRESS,S_NATIONKEY,S_PHONE,S_ACCTBAL,S_COMMENT",
            [f"{key},supplier {key},street {key},{key % _NATIONS},0{key},{key}.5,c" for key in range(_SUPPLIERS)],
        ),
        "PART": (
            "P_PARTKEY,P_NAME,P_MFGR,P_BRAND,P_TYPE,P_SIZE,P_CONTAINER,P_RETAILPRICE,P_COMMENT",
            [f"{key},part {key},m,b,t,{key},box,{key}.25,c" for key in range(_PARTS)],
        ),
        "PARTSUPP": (
            "PS_PARTKEY,PS_SUPPKEY,PS_AVAILQTY,PS_SUPPLYCOST,PS_COMMENT",
            [f"{key},{key % _SUPPLIERS},{key},{key}.75,c" for key in range(_PARTS)],
        ),
        "ORDERS": (
            "O_ORDERKEY,O_CUSTKEY,O_ORDERSTATUS,O_TOTALPRICE,O_ORDERDATE,O_ORDERPRIORITY,O_CLERK,O_SHIPPRIORITY,O_COMMENT",
            [f"{key},{key % _CUSTOMERS},O,{key}.5,{DAY},1-URGENT,clerk,0,c" for key in orders],
        ),
        "LINEITEM": (
            "L_ORDERKEY,L_PARTKEY,L_SUPPKEY,L_LINENUMBER,L_QUANTITY,L_EXTENDEDPRICE,L_DISCOUNT,L_TAX,L_RETURNFLAG,L_LINESTATUS,L_SHIPDATE,"
            "L_COMMITDATE,L_RECEIPTDATE,L_SHIPINSTRUCT,L_SHIPMODE,L_COMMENT",
            [
                f"{key},{part},{part % _SUPPLIERS},{line},{line},{line}.5,0.1,0.2,N,O,{DAY},{DAY},{DAY},NONE,AIR,c"
                for key in orders
                for line in range(1, _LINES + 1)
                for part in [(key * line) % _PARTS]
            ],
        ),
    }
