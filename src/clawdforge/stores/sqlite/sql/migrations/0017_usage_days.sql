-- What the turns of an app have used, by the day (in UTC) on which they ended. It stays when sessions are purged.
-- An empty model is that of the agent. What agents reported and what was estimated have columns of their own.
CREATE TABLE usage_days (
    app_name         TEXT NOT NULL,
    day              TEXT NOT NULL,
    agent            TEXT NOT NULL,
    model            TEXT NOT NULL,
    turns            INTEGER NOT NULL,
    input_tokens     INTEGER NOT NULL,
    output_tokens    INTEGER NOT NULL,
    cached_tokens    INTEGER NOT NULL,
    cost_usd         REAL,
    estimated_input  INTEGER NOT NULL,
    estimated_output INTEGER NOT NULL,
    estimated_cost   REAL,
    PRIMARY KEY (app_name, day, agent, model)
) WITHOUT ROWID;

-- Turns that a fork has copied were used in the session that they come from; they have no number in the log. A row
-- does not say whether its agent reported nothing: an estimate from the text has no cost, no cache and no counter.
INSERT INTO usage_days
SELECT app_name, day, agent, model, count(*),
       CAST(min(total(iif(told, taken, 0)), 9007199254740991) AS INTEGER),
       CAST(min(total(iif(told, given, 0)), 9007199254740991) AS INTEGER),
       CAST(min(total(iif(told, cached, 0)), 9007199254740991) AS INTEGER),
       min(9e15, sum(iif(computed, NULL, cost))),
       CAST(min(total(iif(told, 0, taken)), 9007199254740991) AS INTEGER),
       CAST(min(total(iif(told, 0, given)), 9007199254740991) AS INTEGER),
       min(9e15, sum(iif(computed, cost, NULL)))
FROM (
    SELECT sessions.app_name, strftime('%Y-%m-%d', ended_at / 1000000, 'unixepoch') AS day, sessions.agent,
           coalesce(sessions.model, '') AS model,
           usage ->> 'input_tokens' AS taken, usage ->> 'output_tokens' AS given, usage ->> 'cached_tokens' AS cached,
           usage ->> 'cost_usd' AS cost, coalesce(usage ->> 'cost_estimated', 0) AS computed,
           NOT (coalesce(usage ->> 'estimated', 0) AND usage ->> 'cost_usd' IS NULL
                AND coalesce(usage ->> 'cached_tokens', 0) = 0 AND usage ->> 'counter' IS NULL) AS told
    FROM turns JOIN sessions ON sessions.session_id = turns.session_id
    WHERE state = 'ended' AND started_at IS NOT NULL AND ended_at IS NOT NULL AND first_seq IS NOT NULL
)
GROUP BY app_name, day, agent, model;
