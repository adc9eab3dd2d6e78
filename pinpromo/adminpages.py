"""What the operators' pages share: read-only lists that stay fast on large tables, badges, ages."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString

COUNTED = 10_000  # rows, at most, for the number under a list


class AtLeast(int):
    """A count that was not counted to its end."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # generic in the stubs alone
    """Counts no further than COUNTED: pages beyond are reached by a filter, as no person leafs so far."""

    @cached_property
    def count(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        counted = rows.order_by()[: COUNTED + 1].count()
        return AtLeast(COUNTED) if counted > COUNTED else counted


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows are looked at here, and changed by named actions alone: an edit by hand would tell nobody."""

    exact_fields: ClassVar[Sequence[str]] = ()  # uuid columns, each with an index, that the search looks at
    search_fields = ("pk",)  # shows the search box; what it does stands in get_search_results
    paginator = BoundedPaginator
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        title = str(self.opts.verbose_name_plural).capitalize()
        return super().changelist_view(request, {"title": title} | (extra_context or {}))

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002
        return False

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find the rows with the whole id; anything less would read the whole table."""
        if not search_term.strip():
            return queryset, False
        try:
            wanted = uuid.UUID(search_term.strip())
        except ValueError:
            messages.warning(request, f"“{search_term}” is not a whole id, such as {uuid.UUID(int=0)}.")
            return queryset.none(), False
        condition = Q()
        for name in self.exact_fields:
            condition |= Q(**{name: wanted})
        return queryset.filter(condition), False


class ChoiceFilter(admin.SimpleListFilter):
    """A filter whose choices narrow the rows by a function each; `preset` holds when none is chosen."""

    choices_by_name: ClassVar[Mapping[str, tuple[str, Callable[[Any], QuerySet[Any]]]]]
    preset: str | None = None

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(name, label) for name, (label, _narrow) in self.choices_by_name.items()]

    def value(self) -> str | None:
        chosen = super().value()
        return chosen if chosen in self.choices_by_name else self.preset

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        chosen = self.value()
        return queryset if chosen is None else self.choices_by_name[chosen][1](queryset)

    def choices(self, changelist: Any) -> Iterator[Any]:
        offered = super().choices(changelist)
        return islice(offered, 1, None) if self.preset else offered  # a preset leaves no "All" that means no filter


def badge(kind: str, text: str) -> SafeString:
    """Return a coloured label; `kind` is ok, warn, bad, busy or idle, and the text says the same in words."""
    return format_html('<span class="badge {}">{}</span>', kind, text)


def age(span: timedelta) -> str:
    """Return a span in its two largest units, such as `3 h 12 min`."""
    seconds = int(abs(span.total_seconds()))
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    if days:
        return f"{days:,} d {hours} h" if days < 10 and hours else f"{days:,} d"
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min" if minutes else f"{seconds} s"
