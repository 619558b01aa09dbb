"""The dbt contract: metadata from the warehouse directory (`warehouse_adapter`), writes as one engine call each."""

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
from dbt.adapters.lakehouse.config.validation import check_all, check_nodes, check_profile, check_sources, check_threads
from dbt.adapters.lakehouse.environments import environment_of
from dbt.adapters.lakehouse.operations import Report, check_arguments, operate
from dbt.adapters.lakehouse.reading.introspection import keep_comments, store_view
from dbt.adapters.lakehouse.reading.queries import SnapshotColumns
from dbt.adapters.lakehouse.relation import LakehouseRelation, relation_class
from dbt.adapters.lakehouse.surroundings import surroundings_of
from dbt.adapters.lakehouse.warehouse_adapter import WarehouseAdapter
from dbt.adapters.lakehouse.work.held import begin_audits, current_audits, end_audits, hand_over_results
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
from lakehouse_engine.api.options import conflict_retries, option_findings

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("Lakehouse")

RUNS_SQL = frozenset({"build", "clone", "retry", "run", "show", "snapshot", "test"})
"""dbt's commands that need Spark, as far as their selection is not empty. Seeds, operations and sources' freshness do without."""


def _nothing(*_: Any, **__: Any) -> None:
    """What a write answers while dbt parses."""


class LakehouseAdapter(WarehouseAdapter):
    """Dialect and types are dbt-spark's, metadata the warehouse directory's; here are configs, writes, operations and Python models."""

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
        """dbt makes the adapter before it parses: a command that runs SQL has Spark start meanwhile."""
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
        """dbt says so at the end of a command: a Spark that no statement asked for does not outlive it."""
        super().cleanup_connections()
        environment_of(self.config.credentials).end_early()
        end_audits()

    @contextmanager
    def connection_named(self, name: str, query_header_context: Any = None, should_release_connection: bool = True) -> Iterator[None]:
        """dbt takes the connection called master before the first node and after the last one: there audited models are published."""
        with super().connection_named(name, query_header_context, should_release_connection):
            if name == "master":
                self._publish_audited()
            yield

    def pre_model_hook(self, config: Mapping[str, Any]) -> Any:
        """Before a model that is not audited, what it reads of audited ones is published."""
        mend_batches()  # here, as dbt-core loads what runs models after it has parsed them, unless it retries
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
        """dbt hands over the parsed project here, in every command: the place where wrong configs are refused."""
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
            begin_audits(self._house(), nodes, self._command)

    def valid_incremental_strategies(self) -> list[str]:
        return list(STRATEGIES)

    @property
    def _command(self) -> str:
        return str(getattr(getattr(self.config, "args", None), "which", None))

    def debug_query(self) -> None:
        """`dbt debug`: look at the warehouse, start Spark, show what runs."""
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
        """What is never written to from here has to be there."""
        if schemas := self.list_schemas(name):
            logger.info(f"  catalog {name}: {place} ({len(schemas)} schema(s), to be read only)")
        else:
            logger.warning(f"  catalog {name}: there is no schema in {place} to read from: check the profile's 'catalogs'")

    # -- writes: each is one commit, and its response is the model's result

    def _write(self, sql: str, job: Callable[[Warehouse], Any], options: Mapping[str, str] | None = None) -> AdapterResponse:
        """Run a write as dbt runs a statement: logged, cancellable, its errors mapped; again, when what `sql` reads of it has changed."""
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
        """Have the model's writer do something with the rows of `sql`."""
        writer = self._writer(self._files, relation, model)
        session = self.connections.session()
        response = self._write(sql, lambda house: self._act(act, writer, house, session.rows(sql, house), model), writer.config.options)
        return self._told(response, model)

    @staticmethod
    def _told(response: AdapterResponse, model: Mapping[str, Any]) -> AdapterResponse:
        """The response of a model's write; one that is held back has no instant of its table yet."""
        audits = current_audits()
        return held_back(response) if audits is not None and audits.holds(str(model["unique_id"])) else response

    @staticmethod
    def _act(act: Callable[[TableWriter, Any], Any], writer: TableWriter, house: Warehouse, rows: Any, model: Mapping[str, Any]) -> Any:
        """Have a model's writer write, or what holds its writes back."""
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
        """The table with the rows and columns of `sql`, whatever was there; `within`: of a batch whose time range that is."""
        kind = str(existing.type) if existing is not None else None
        return self._write_rows(relation, sql, model, lambda writer, rows: writer.replace(rows, existing=kind, within=within))

    @available.parse(_nothing)
    def write_relation(
        self, relation: LakehouseRelation, sql: str, strategy: str, model: Mapping[str, Any], argument: Any = None
    ) -> AdapterResponse:
        """Add the rows of `sql` by one of the writer's increments; `argument` is its keys or its condition."""
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
        """A snapshot's query, as dbt's own may compare its rows with those of the table, and put them together."""
        session = self.connections.session()

        def source(house: Warehouse) -> str:
            schema = house.table(*relation.stored).schema
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
        """The table with the rows of a CSV file. Needs no Spark."""
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
        """Store the view's definition, after Spark could analyse it."""
        session = self.connections.session()
        return self._write(sql, lambda house: store_view(house, relation, sql, session.rows(sql, house)))

    @available.parse(_nothing)
    def write_external(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> AdapterResponse:
        """Write the rows of `sql` to the model's location, and store a view that reads them there."""
        session = self.connections.session()
        config = ExternalConfig.of(str(model["unique_id"]), model["config"], self.Relation.around.project_root)
        checks, uniques = checks_of(model), uniques_of(model)
        response = self._write(sql, lambda house: write_external(house, relation, config, session.rows(sql, house), checks, uniques))
        return replace(response, _message=f"{config.format} in {config.location}")

    @available.parse(lambda *a, **k: "")
    def materialized_view_text(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> str:
        """The statement that makes a model's materialized view."""
        materialized.check_model(model)
        return materialized.create_text(str(relation), sql, ModelConfig.from_node(model, self.config.credentials.hoodie))

    @available.parse(_nothing)
    def materialized_view_changes(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> materialized.ViewChanges | None:
        """What of a model its materialized view does not have yet; None where it has everything."""
        config = ModelConfig.from_node(model, self.config.credentials.hoodie)
        return self._ask(
            lambda metadata: materialized.changes_of(metadata.warehouse, *relation.stored, sql, config) or None
        )

    @available.parse(lambda *a, **k: "")
    def materialized_view_alteration(self, relation: LakehouseRelation, sql: str, changes: materialized.ViewChanges) -> str:
        """The statements that make such changes, but for those that it is built anew for."""
        return materialized.alter_text(str(relation), sql, changes)

    @available.parse(_nothing)
    def write_function(self, relation: LakehouseRelation, sql: str, model: Mapping[str, Any]) -> AdapterResponse:
        """Store the function of a node, after Spark could make it. `sql` says what it is, for the log."""
        return self._write(sql, lambda house: house.create_function(*relation.stored, stored_function(model)))

    @available.parse(lambda *a, **k: None)
    def function_default(self, argument: Mapping[str, Any]) -> str | None:
        """An argument's default as SQL; None where it has none."""
        return default_text(argument.get("default_value"))

    @available.parse(lambda *a, **k: "")
    def nested_literal(self, value: Any, kind: str) -> str:
        """A mapping or a list of a unit test's rows as SQL."""
        return nested_literal(value, kind)

    @available.parse(lambda *a, **k: "")
    def contract_text(self, model: Mapping[str, Any]) -> str:
        """What becomes of the constraints of the model's contract, as comments of SQL; empty without one that is enforced."""
        return contract_text(model)

    @available.parse(_nothing)
    def set_comments(self, relation: LakehouseRelation, comment: str | None, columns: Mapping[str, str]) -> None:
        """Keep descriptions beside the relation."""

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
        """Carry a run-operation out on the selected tables of the graph. `unknown` are arguments that it does not have."""
        with self.connections.exception_handler(operation):
            warehouse = self._files
            check_arguments(operation, (*selection, *arguments), unknown)
            tables = select_tables(graph["nodes"], selection, lambda *name: warehouse.kind(*name) == "table", warehouse.options)
            return operate(warehouse, operation, tables, arguments, named=bool(selection.get("model") or selection.get("relation")))

    @available.parse(_nothing)
    def protect_tables(self, graph: Mapping[str, Any], selected: Iterable[str]) -> list[str]:
        """Take savepoints of the tables that the run builds; lines to print."""
        with self.connections.exception_handler("protect"):
            return self._guards.protect(self._files, graph["nodes"], selected)

    @available.parse(_nothing)
    def restore_failed(self, results: Iterable[Any]) -> tuple[list[str], list[str]]:
        """Restore the protected tables that failed tests guard; lines to print, and what went wrong."""
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
        """The statement of a hook, rendered; errors say that it is one, from here until `end_hook`."""
        self.connections.session().hook = kind
        try:
            return render(text)
        except DbtRuntimeError as error:
            error.msg = of_hook(kind, str(error.msg))
            raise

    @available.parse(_nothing)
    def end_hook(self) -> None:
        """What runs now is the model's own again."""
        self.connections.session().hook = None

    # -- session views and Python models

    @available.parse(_nothing)
    def create_session_view(self, relation: LakehouseRelation, sql: str) -> None:
        """A view of this thread's session: it keeps the snapshots that `sql` was bound to."""
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
        """Whether LIMIT behind `sql` limits what is shown, and not what is stored."""
        return api.sql.takes_limit(sql)

    @available.parse(lambda *a, **k: "")
    def python_view(self, model: Mapping[str, Any]) -> str:
        """The session view that a Python model's rows are in."""
        return f"__dbt_python_{model['alias']}"
