"""The dbt adapter class: metadata comes from the warehouse directory (`warehouse_adapter`), each write is one engine call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from dbt.adapters.base import available
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.events.types import SQLQuery, SQLQueryStatus
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.events.contextvars import get_node_info
from dbt_common.events.functions import fire_event
from dbt_common.exceptions import DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from dbt.adapters.lakehouse import __version__
from dbt.adapters.lakehouse.bridge.outcomes import in_words_of_dbt, is_changed_since_read, response_of
from dbt.adapters.lakehouse.bridge.warehouse import Warehouse
from dbt.adapters.lakehouse.config.dispatch import ask_adapter_first, ask_databricks_last
from dbt.adapters.lakehouse.config.external_config import ExternalConfig, check_places
from dbt.adapters.lakehouse.config.model_config import STRATEGIES, LakehouseConfig, ModelConfig
from dbt.adapters.lakehouse.config.place import project_folder
from dbt.adapters.lakehouse.config.validation import CHECKED, check_all, check_nodes, check_profile, check_sources, check_threads
from dbt.adapters.lakehouse.environments import environment_of
from dbt.adapters.lakehouse.operations import Report, check_arguments, operate
from dbt.adapters.lakehouse.reading.introspection import keep_comments, store_view
from dbt.adapters.lakehouse.reading.queries import SnapshotColumns
from dbt.adapters.lakehouse.relation import LakehouseRelation, relation_class
from dbt.adapters.lakehouse.surroundings import surroundings_of
from dbt.adapters.lakehouse.warehouse_adapter import WarehouseAdapter
from dbt.adapters.lakehouse.work.audit_registry import begin_audits, current_audits, end_audits, hand_over_results
from dbt.adapters.lakehouse.work.python_models import check_python_model, run_python_model
from dbt.adapters.lakehouse.work.response import held_back
from dbt.adapters.lakehouse.work.session import of_hook
from dbt.adapters.lakehouse.writing import materialized, seeds
from dbt.adapters.lakehouse.writing.audits import AuditOvertakenError
from dbt.adapters.lakehouse.writing.checks.constraints import checks_of, contract_text, lengths_of, uniques_of
from dbt.adapters.lakehouse.writing.external import write_external
from dbt.adapters.lakehouse.writing.frames import columns_of
from dbt.adapters.lakehouse.writing.functions import default_text, stored_function
from dbt.adapters.lakehouse.writing.guards import Guards
from dbt.adapters.lakehouse.writing.microbatch import mend_batches
from dbt.adapters.lakehouse.writing.nested import nested_literal
from dbt.adapters.lakehouse.writing.selection import select_tables
from dbt.adapters.lakehouse.writing.snapshots import by_members, check_named_columns
from dbt.adapters.lakehouse.writing.writes import TableWriter, commit_metadata
from lakehouse_engine import api
from lakehouse_engine.api.options import conflict_retries, option_findings, tuning_options

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("Lakehouse")

RUNS_SQL = frozenset({"build", "clone", "retry", "run", "show", "snapshot", "test"})
"""dbt commands that need Spark, unless their selection is empty. Seeds, operations and source freshness do not."""


def _note_tuning(defaults: Mapping[str, str], nodes: Mapping[str, Any]) -> None:
    """Say once which `hoodie.*` keys have no effect, as they tune Hudi's own execution."""
    checked = [node.config.get("hoodie") or {} for node in nodes.values() if str(node.resource_type) in CHECKED]
    found = {key for given in (defaults, *checked) for key in tuning_options(given)}
    if found:
        logger.info(f"without effect here, as they tune Hudi's own execution: {', '.join(sorted(found))}")


def _nothing(*_: Any, **__: Any) -> None:
    """Result of a write while dbt parses."""


class LakehouseAdapter(WarehouseAdapter):
    """SQL dialect and types come from dbt-spark, metadata from the warehouse directory; this class adds configs, writes, operations and
    Python models.
    """

    AdapterSpecificConfigs = LakehouseConfig  # type: ignore[assignment]  # dbt-spark names its own class as the type
    _guarding: Guards | None = None

    CONSTRAINT_SUPPORT: ClassVar[dict[ConstraintType, ConstraintSupport]] = {  # type: ignore[misc]  # dbt declares it without ClassVar
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_ENFORCED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: CapabilitySupport(support=Support.Full),
            Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadata: CapabilitySupport(support=Support.Full),
            Capability.TableLastModifiedMetadataBatch: CapabilitySupport(support=Support.Full),
            Capability.MicrobatchConcurrency: CapabilitySupport(support=Support.Full),
        }
    )

    def __init__(self, config: Any, mp_context: Any) -> None:
        """Start Spark for commands that run SQL; dbt creates the adapter before it parses."""
        super().__init__(config, mp_context)
        # `dbt debug` has a profile only.
        moved = config.credentials.settle(Path(getattr(config, "project_root", None) or project_folder()))
        if moved:
            logger.warning(moved)
        self.Relation = relation_class(surroundings_of(config))
        self.Relation.types_of = staticmethod(self._types_of)  # relations of two classes would not be equal
        check_threads(getattr(config, "threads", None))
        ask_adapter_first(config)
        ask_databricks_last()
        if self._command in RUNS_SQL:
            environment_of(config.credentials).start_early()

    def cleanup_connections(self) -> None:
        """At the end of a command, stop a Spark that no statement needed."""
        super().cleanup_connections()
        environment_of(self.config.credentials).end_early()
        end_audits()

    @contextmanager
    def connection_named(self, name: str, query_header_context: Any = None, should_release_connection: bool = True) -> Iterator[None]:
        """Publish audited models when dbt acquires its master connection, before the first node and after the last."""
        with super().connection_named(name, query_header_context, should_release_connection):
            if name == "master":
                self._publish_audited()
            yield

    def pre_model_hook(self, config: Mapping[str, Any]) -> Any:
        """Before a model that is not audited, publish the audited models that it reads."""
        mend_batches()  # imported here: dbt-core loads its task runners after parsing, unless it retries
        hand_over_results()
        audits = current_audits()
        if audits is not None:
            for line in audits.before(str(self.connections.get_thread_connection().name), self._publish):
                logger.info(line)
        return super().pre_model_hook(config)

    def _publish_audited(self) -> None:
        audits = current_audits()
        if audits is None:
            return
        lines, failures = audits.settle(self._publish)
        for line in lines:
            logger.info(line)
        failures = audits.mark(failures)
        if failures:
            raise DbtRuntimeError(f"{len(failures)} audited model(s) not published: {'; '.join(failures)}")

    def _publish(self, job: Callable[[Warehouse], Any]) -> Any:
        with self.connections.exception_handler("publish"):
            try:
                return self.connections.session().work(job)
            except Exception as error:
                if is_changed_since_read(error):
                    raise AuditOvertakenError(str(error)) from error
                raise

    # -- configs

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        """Check all configs. dbt hands over the parsed project here, in every command."""
        super().set_macro_resolver(macro_resolver)
        mend_batches()
        hand_over_results()
        nodes = getattr(macro_resolver, "nodes", None)
        if nodes:
            macros = {macro.name for macro in cast(Any, macro_resolver).macros.values()}
            defaults = self.config.credentials.hoodie
            sources = list(getattr(macro_resolver, "sources", {}).values())
            around, given = self.Relation.around, self.config.credentials
            warehouses = [given.warehouse, *(place.warehouse for place in given.catalogs.values())]
            check_profile(defaults, option_findings)
            check_all(
                lambda: self.know_files(sources),
                lambda: check_sources(sources, nodes),
                lambda: check_nodes(nodes, self.config.project_name, macros, lambda given: option_findings({**defaults, **given})),
                lambda: check_places(nodes, around.project_root, warehouses, allow_files=around.allow_files),
            )
            _note_tuning(defaults, nodes)
            begin_audits(self._house(), nodes, self._command)

    def valid_incremental_strategies(self) -> list[str]:
        return list(STRATEGIES)

    @property
    def _command(self) -> str:
        return str(getattr(getattr(self.config, "args", None), "which", None))

    def debug_query(self) -> None:
        """`dbt debug`: check the warehouse, start Spark, show versions."""
        credentials = self.config.credentials
        with self.connections.exception_handler("warehouse"):
            self._files.check_usable()
        schemas = self.list_schemas(None)
        holds = f"{len(schemas)} schema(s)" if schemas else "nothing is there yet; the first command that writes makes it"
        logger.info(f"  warehouse: {credentials.warehouse} ({holds})")
        for name, place in credentials.catalogs.items():
            self._show_attached(name, place.warehouse)
        for name, text in environment_of(credentials).describe().items():
            logger.info(f"  {name}: {text}")
        self.execute("select 1 as id")

    def _show_attached(self, name: str, place: str) -> None:
        """An attached warehouse must exist, since nothing here creates it."""
        if schemas := self.list_schemas(name):
            logger.info(f"  catalog {name}: {place} ({len(schemas)} schema(s), to be read only)")
        else:
            logger.warning(f"  catalog {name}: there is no schema in {place} to read from: check the profile's 'catalogs'")

    # -- writes: each is one commit, and its response is the model's result

    def _write(self, sql: str, job: Callable[[Warehouse], Any], options: Mapping[str, str] | None = None) -> AdapterResponse:
        """Run a write like a dbt statement: logged, cancellable, errors mapped. It is repeated if what `sql` reads has changed."""
        retries = conflict_retries(self.config.credentials.hoodie if options is None else options)
        connection = self.connections.get_thread_connection()
        text = self.connections._add_query_comment(sql)
        fire_event(SQLQuery(conn_name=str(connection.name), sql=text, node_info=get_node_info()))
        started = datetime.now(timezone.utc)
        try:
            with self.connections.exception_handler(sql):
                response = response_of(self.connections.session().write(sql, job, retries))
        except DbtRuntimeError as error:
            error.msg = in_words_of_dbt(str(error.msg))
            raise
        for failure in getattr(response, "failed_services", None) or ():
            logger.warning(f"{connection.name}: {failure}")
        elapsed = (datetime.now(timezone.utc) - started).total_seconds()
        fire_event(SQLQueryStatus(status=str(response), elapsed=elapsed, node_info=get_node_info(), query_id=response.query_id))
        return response

    def _write_rows(
        self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any], act: Callable[[TableWriter, Any], Any]
    ) -> AdapterResponse:
        """Pass the rows of `sql` to a method of the model's writer."""
        writer = self._writer(self._files, relation, model)
        session = self.connections.session()
        response = self._write(sql, lambda house: self._act(act, writer, house, session.rows(sql, house), model), writer.config.options)
        return self._told(response, model)

    @staticmethod
    def _told(response: AdapterResponse, model: Mapping[str, Any]) -> AdapterResponse:
        """Response of a model's write. A held-back write has no instant of its table yet."""
        audits = current_audits()
        return held_back(response) if audits is not None and audits.holds(str(model["unique_id"])) else response

    @staticmethod
    def _act(act: Callable[[TableWriter, Any], Any], writer: TableWriter, house: Warehouse, rows: Any, model: Mapping[str, Any]) -> Any:
        """Write with the model's writer, or with the audit that holds its writes back."""
        audits, node = current_audits(), str(model["unique_id"])
        if audits is not None and audits.holds(node):
            return audits.write(node, writer, act, house, rows)
        return act(replace(writer, warehouse=house), rows)

    def _writer(self, warehouse: Warehouse, relation: LakehouseRelation, model: Mapping[str, Any]) -> TableWriter:
        schema, identifier = relation.stored
        return TableWriter(
            warehouse=warehouse,
            schema=schema,
            identifier=identifier,
            config=ModelConfig.from_node(model, self.config.credentials.hoodie),
            metadata=commit_metadata(model, get_invocation_id(), __version__.version),
            checks=checks_of(model),
            uniques=uniques_of(model),
            lengths=lengths_of(model),
        )

    @available.parse(_nothing)
    def replace_relation(
        self,
        relation: LakehouseRelation,
        sql: str,
        model: Mapping[str, Any],
        existing: LakehouseRelation | None = None,
        within: str | None = None,
    ) -> AdapterResponse:
        """Replace the table by the rows and columns of `sql`. `within`: the time range, if they are one batch."""
        kind = str(existing.type) if existing is not None else None
        return self._write_rows(relation, sql, model, lambda writer, rows: writer.replace(rows, existing=kind, within=within))

    @available.parse(_nothing)
    def write_relation(
        self, relation: LakehouseRelation, sql: str, strategy: str, model: Mapping[str, Any], argument: Any = None
    ) -> AdapterResponse:
        """Add the rows of `sql` by one of the writer's increments; `argument` is its keys or condition."""
        arguments = [] if argument is None else [argument]
        return self._write_rows(relation, sql, model, lambda writer, rows: getattr(writer, strategy)(rows, *arguments))

    @available.parse(_nothing)
    def check_snapshot(self, sql: str, model: Mapping[str, Any]) -> None:
        """Refuse a snapshot whose query lacks a column that a config names. Raises `DbtDatabaseError`."""
        session = self.connections.session()
        with self.connections.exception_handler(sql):
            columns = session.work(lambda house: columns_of(session.rows(sql, house)))
        check_named_columns(model["unique_id"], model["config"], columns)

    @available.parse(lambda _self, _relation, sql, *_: sql)
    def snapshot_source(self, relation: LakehouseRelation, sql: str, hard_deletes: str | None) -> str:
        """A snapshot's query, rewritten so that dbt can compare and unite its rows with the table's."""
        session = self.connections.session()

        def source(house: Warehouse) -> str:
            schema = house.look(*relation.stored).schema
            return by_members(str(relation), sql, schema, lambda: session.rows(sql, house), unites=hard_deletes == "new_record")

        with self.connections.exception_handler(sql):
            return session.work(source)

    @available.parse(_nothing)
    def write_snapshot(
        self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any], columns: Mapping[str, str], current: str | None = None
    ) -> AdapterResponse:
        """Apply the changes that a snapshot staged; `current` is the SQL of `dbt_valid_to_current`."""
        names = SnapshotColumns(columns["dbt_scd_id"], columns["dbt_valid_to"], current)
        return self._write_rows(relation, sql, model, lambda writer, rows: writer.snapshot(rows, names))

    @available.parse(_nothing)
    def check_seed(self, model: Mapping[str, Any]) -> None:
        """Refuse a file without a header. Raises `DbtRuntimeError`."""
        seeds.check_header(model["unique_id"], os.path.join(model["root_path"] or ".", model["original_file_path"]))

    @available.parse(_nothing)
    def write_seed(
        self,
        relation: LakehouseRelation,
        table: agate.Table,
        model: Mapping[str, Any],
        existing: LakehouseRelation | None = None,
    ) -> AdapterResponse:
        """Replace the table by the rows of a CSV file. Needs no Spark."""
        from dbt.adapters.lakehouse.writing.seed_columns import seed_table

        inferred = {name: self.convert_type(table, position) for position, name in enumerate(table.column_names)}
        types = model["config"].get("column_types") or {}
        rows = seed_table(table, inferred, types)
        kind = str(existing.type) if existing is not None else None
        with self.connections.exception_handler("seed"):
            house = self._files
            writer = replace(self._writer(house, relation, model), lengths=seeds.text_lengths(table.column_names, types))
            written = self._act(lambda writer, rows: writer.replace(rows, existing=kind), writer, house, rows, model)
            return self._told(response_of(written), model)

    @available.parse(_nothing)
    def write_view(self, relation: LakehouseRelation, sql: str, existing: LakehouseRelation | None = None) -> AdapterResponse:
        """Store a view's definition after Spark has analysed it."""
        session = self.connections.session()
        return self._write(sql, lambda house: store_view(house, relation, sql, session.rows(sql, house)))

    @available.parse(_nothing)
    def write_external(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> AdapterResponse:
        """Write the rows of `sql` to the model's location, and store a view that reads them."""
        session = self.connections.session()
        config = ExternalConfig.of(str(model["unique_id"]), model["config"], self.Relation.around.project_root)
        checks, uniques = checks_of(model), uniques_of(model)
        response = self._write(sql, lambda house: write_external(house, relation, config, session.rows(sql, house), checks, uniques))
        return replace(response, _message=f"{config.format} in {config.location}")

    @available.parse(lambda *a, **k: "")
    def materialized_view_text(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> str:
        """Statement that makes a model's materialized view."""
        materialized.check_model(model)
        return materialized.create_text(str(relation), sql, ModelConfig.from_node(model, self.config.credentials.hoodie))

    @available.parse(_nothing)
    def materialized_view_changes(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> materialized.ViewChanges | None:
        """Configs of the model that its materialized view does not have yet; None if there are none."""
        config = ModelConfig.from_node(model, self.config.credentials.hoodie)
        return self._ask(
            lambda metadata: materialized.changes_of(metadata.warehouse, *relation.stored, sql, config) or None
        )

    @available.parse(lambda *a, **k: "")
    def materialized_view_alteration(self, relation: LakehouseRelation, sql: str, changes: materialized.ViewChanges) -> str:
        """Statements for such changes, except those that need a rebuild."""
        return materialized.alter_text(str(relation), sql, changes)

    @available.parse(_nothing)
    def write_function(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> AdapterResponse:
        """Store a node's function after Spark has made it. `sql` describes it in the log."""
        return self._write(sql, lambda house: house.create_function(*relation.stored, stored_function(model)))

    @available.parse(lambda *a, **k: None)
    def function_default(self, argument: Mapping[str, Any]) -> str | None:
        """An argument's default as SQL; None without one."""
        return default_text(argument.get("default_value"))

    @available.parse(lambda *a, **k: "")
    def nested_literal(self, value: Any, kind: str) -> str:
        """A mapping or list in a unit test's rows, as SQL."""
        return nested_literal(value, kind)

    @available.parse(lambda *a, **k: "")
    def contract_text(self, model: Mapping[str, Any]) -> str:
        """What happens to the constraints of the model's contract, as SQL comments; empty without an enforced contract."""
        return contract_text(model)

    @available.parse(_nothing)
    def set_comments(self, relation: LakehouseRelation, comment: str | None, columns: Mapping[str, str]) -> None:
        """Store descriptions beside the relation."""

        def keep(warehouse: Warehouse) -> None:
            keep_comments(warehouse, relation, comment, columns)

        self._ask(lambda metadata: keep(metadata.warehouse))
        audits, node = current_audits(), str(self.connections.get_thread_connection().name)
        if audits is not None and audits.holds(node):
            audits.also(node, keep)

    # -- operations on tables, without Spark

    @available.parse(_nothing)
    def run_operation(
        self,
        operation: str,
        graph: Mapping[str, Any],
        selection: Mapping[str, Any],
        arguments: Mapping[str, Any],
        unknown: Mapping[str, Any] | None = None,
    ) -> Report:
        """Run an operation on the selected tables of the graph. `unknown` are arguments that it does not have."""
        with self.connections.exception_handler(operation):
            warehouse = self._files
            check_arguments(operation, (*selection, *arguments), unknown)
            tables = select_tables(graph["nodes"], selection, lambda *name: warehouse.kind(*name) == "table", warehouse.options)
            return operate(warehouse, operation, tables, arguments, named=bool(selection.get("model") or selection.get("relation")))

    @available.parse(_nothing)
    def protect_tables(self, graph: Mapping[str, Any], selected: Iterable[str]) -> list[str]:
        """Take savepoints of the tables that the run builds; returns lines to print."""
        with self.connections.exception_handler("protect"):
            return self._guards.protect(self._files, graph["nodes"], selected)

    @available.parse(_nothing)
    def restore_failed(self, results: Iterable[Any]) -> tuple[list[str], list[str]]:
        """Restore the protected tables whose tests failed; returns lines to print, and failures."""
        with self.connections.exception_handler("restore"):
            return self._guards.settle(self._files, results)

    @property
    def _guards(self) -> Guards:
        invocation = get_invocation_id()
        if self._guarding is None or self._guarding.invocation_id != invocation:
            self._guarding = Guards(invocation)
        return self._guarding

    # -- hooks

    @available.parse(lambda _render, text, *_: text)
    def hook_text(self, render: Callable[[str], str], text: str, kind: str) -> str:
        """Rendered statement of a hook. Until `end_hook`, errors say that they come from it."""
        self.connections.session().hook = kind
        try:
            return render(text)
        except DbtRuntimeError as error:
            error.msg = of_hook(kind, str(error.msg))
            raise

    @available.parse(_nothing)
    def end_hook(self) -> None:
        """The model's own statements follow."""
        self.connections.session().hook = None

    # -- session views and Python models

    @available.parse(_nothing)
    def create_session_view(self, relation: LakehouseRelation, sql: str) -> None:
        """Make a view of this thread's session; it keeps the snapshots that `sql` was bound to."""
        with self.connections.exception_handler(sql):
            self.connections.session().keep_view(str(relation.identifier), sql)

    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> AdapterResponse:
        view, unique_id = self.python_view(parsed_model), parsed_model["unique_id"]
        with self.connections.exception_handler(compiled_code):
            check_python_model(parsed_model)
            environment_of(self.config.credentials).before_python()
            self.connections.session().keep_view(view, "", lambda house: run_python_model(compiled_code, house, view, unique_id))
        return AdapterResponse(_message="OK", code="OK")

    @available.parse(lambda *a, **k: False)
    def takes_limit(self, sql: str) -> bool:
        """True if a LIMIT after `sql` limits what is shown, not what is stored."""
        return api.sql.takes_limit(sql)

    @available.parse(lambda *a, **k: "")
    def python_view(self, model: Mapping[str, Any]) -> str:
        """Session view with the rows of a Python model."""
        return f"__dbt_python_{model['alias']}"
