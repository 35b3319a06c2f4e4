"""The environment of somebody whose keys lead to the strict double."""

from geode.dev.fake_provider.server import FakeProvider
from geode.llm.credentials import ACCESS
from geode.llm.routes import Route


def keys_of(double: FakeProvider) -> dict[str, str]:
    """Return every key and address, as the settings hold them."""
    keys = {access.variable: double.key(route) for route, access in ACCESS.items()}
    # By the plan and by key one asks at the same address.
    asked = {route: route for route in ACCESS} | {Route.OPENAI_CODEX: Route.OPENAI}
    return keys | {access.address_variable: double.base_url(asked[route]) for route, access in ACCESS.items()}
