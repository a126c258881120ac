"""The page in Airflow: what people look at rather than read, rendered on the server.

``app`` has the routes; ``access`` says who may see what; ``records`` reads Airflow's database;
``overview``, ``mirror``, ``plan_table`` and ``timeline`` make what the templates show.
"""
