"""The page in Airflow: what people look at rather than read, rendered on the server.

``app`` puts the routes of ``jobs``, ``runs`` and ``connections`` together; ``access`` says who may
see what; ``records`` reads Airflow's database; ``overview``, ``mirror`` and ``plan_table`` make
what the templates show.
"""
