"""Rows of one app that another must not see, named after its session."""

from clawdforge.core.models.blobs import BlobRow, BlobState, PublicationRow
from clawdforge.core.models.budgets import BudgetRow, ReservationRow
from clawdforge.core.models.nodes import WishKind, WishRow
from clawdforge.core.models.rows import LinkRow, PersonaRow
from clawdforge.core.models.schedules import OccurrenceRow, ScheduleRow
from clawdforge.core.models.webhooks import DeliveryRow, EndpointRow
from clawdforge.wire.budgets import BudgetPeriod, BudgetScope
from clawdforge.wire.schedules import Missed, OccurrenceState, Overlap
from clawdforge.wire.webhooks import WebhookEvent
from tests.conformance.stores.samples import APP, OTHER


def a_budget(session_id: str) -> BudgetRow:
    return BudgetRow(
        app_name=APP,
        budget_id=f"b-{session_id}",
        scope=BudgetScope.SESSION,
        scope_id=session_id,
        period=BudgetPeriod.DAY,
        warn_at=0.5,
        created_at=1,
    )


def a_reservation(session_id: str) -> ReservationRow:
    return ReservationRow(
        app_name=APP, holder_id=session_id, turn_index=1, budget_id=f"b-{session_id}", starts_at=1
    )


def a_wish(session_id: str) -> WishRow:
    return WishRow(
        wish_id=f"w-{session_id}",
        app_name=OTHER,
        session_id=session_id,
        node="n",
        kind=WishKind.CANCEL,
        wished_at=1,
    )


def a_publication(session_id: str, turn_index: int) -> PublicationRow:
    return PublicationRow(
        session_id=session_id,
        turn_index=turn_index,
        agent_session_id="a",
        home=(),
        workspace=None,
        published_at=1,
    )


def a_blob(session_id: str, state: BlobState) -> BlobRow:
    word = "pending" if state is BlobState.PENDING else "place"
    return BlobRow(
        place=f"{word}-{session_id}",
        app_name=APP,
        digest=f"digest-{session_id}",
        size=1,
        state=state,
        touched_at=1,
    )


def a_link(session_id: str, share_id: str, app: str = OTHER) -> LinkRow:
    return LinkRow(
        share_id=share_id,
        app_name=app,
        session_id=session_id,
        hash=share_id.encode(),
        created_at=1,
        expires_at=2,
        up_to_turn=1,
        last_seq=1,
    )


def an_endpoint(session_id: str) -> EndpointRow:
    return EndpointRow(
        app_name=APP,
        endpoint_id=f"e-{session_id}",
        url="https://receiver",
        events=("turn.ended",),
        secret="whsec_",
        created_at=1,
    )


def a_delivery(session_id: str) -> DeliveryRow:
    return DeliveryRow(
        app_name=APP,
        delivery_id=f"d-{session_id}",
        endpoint_id=f"e-{session_id}",
        event=WebhookEvent.TURN_ENDED,
        body="{}",
        created_at=1,
        next_at=1,
        gives_up_at=2,
    )


def a_schedule(session_id: str) -> ScheduleRow:
    return ScheduleRow(
        app_name=APP,
        schedule_id=f"c-{session_id}",
        prompt="p",
        timezone="UTC",
        session_id=session_id,
        overlap=Overlap.SKIP,
        missed=Missed.SKIP,
        next_at=1,
        created_at=1,
    )


def an_occurrence(session_id: str) -> OccurrenceRow:
    return OccurrenceRow(
        app_name=APP,
        schedule_id=f"c-{session_id}",
        occurrence_id="o",
        planned_at=1,
        noted_at=1,
        state=OccurrenceState.MISSED,
    )


def a_persona(name: str) -> PersonaRow:
    return PersonaRow(app_name=APP, name=name, agent="demo", created_at=1)
