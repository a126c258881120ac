"""The team of a connection or DAG, as Airflow's resource details take it."""

from airflow_mm2_offsets.plugins.teams import team_of


class WithTeams:
    """As Airflow 3.2's models."""

    @staticmethod
    def get_team_name(name: str) -> str | None:
        assert "\0" not in name, "PostgreSQL refuses it"
        return {"mm2": "streams"}.get(name)


def test_a_release_with_teams_is_asked() -> None:
    """What has no team is of none."""
    assert team_of(WithTeams, "mm2") == {"team_name": "streams"}
    assert team_of(WithTeams, "other") == {"team_name": None}


def test_an_older_release_is_given_no_team() -> None:
    """Its details take no such argument."""
    assert team_of(object, "mm2") == {}


def test_an_id_that_no_database_holds_is_not_looked_for() -> None:
    """A request may name anything."""
    assert team_of(WithTeams, "mm2\0") == {}
