"""Base classes of dbt-tests-adapter that no class of ours runs, and why, and those that are not to be run by themselves.

Named below `dbt.tests.adapter`.
"""

from __future__ import annotations

_JAVASCRIPT = "Spark has no functions in JavaScript; Python is there"

FILLED_IN: dict[str, str] = dict.fromkeys(
    (
        "caching.test_caching.BaseCachingTest",
        "constraints.test_constraints.BaseConstraintsColumnsEqual",
        "constraints.test_constraints.BaseContractSqlHeader",
        "functions.test_udafs.UDAFBase",
        "utils.base_array_utils.BaseArrayUtils",
        "utils.base_utils.BaseUtils",
        "utils.data_types.base_data_type_macro.BaseDataTypeMacro",
        "utils.test_current_timestamp.BaseCurrentTimestamp",
    ),
    "those of the classes that come from it",
)
"""They have no models of their own; their methods run in each of the classes that give them some."""

REASONS: dict[str, str] = {
    "functions.test_js_udfs.BasicJSAggregateUDF": _JAVASCRIPT,
    "functions.test_js_udfs.BasicJSUDF": _JAVASCRIPT,
    "functions.test_js_udfs.JSAggregateUDFVolatilityIgnored": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDefaultArgSupport": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDeterministicVolatility": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFMultiLineBody": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFNonDeterministicVolatility": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFStableVolatilityWarns": _JAVASCRIPT,
    "functions.test_udfs.PythonUDFNotSupported": "functions in Python are supported",
    "utils.test_current_timestamp.BaseCurrentTimestampAware": "of it and BaseCurrentTimestampNaive, which is wired, an adapter takes one",
}
