-- What the tables are made of. Texts are compared by their bytes, whatever the language of the database.
CREATE DOMAIN word AS text COLLATE "C";

-- A sum of money that stops somewhere; nothing stays nothing.
CREATE FUNCTION up_to(money double precision) RETURNS double precision LANGUAGE sql IMMUTABLE STRICT
RETURN least(9e15, money);

-- How many bytes a message takes, and a run.
CREATE FUNCTION said_bytes(content text, thinking text, tool_calls text, plan text) RETURNS bigint
LANGUAGE sql IMMUTABLE
RETURN (octet_length(content) + octet_length(thinking) + octet_length(tool_calls) + octet_length(plan))::bigint;
CREATE FUNCTION run_bytes(prompt text, error text) RETURNS bigint LANGUAGE sql IMMUTABLE
RETURN (octet_length(prompt) + octet_length(coalesce(error, '')))::bigint;

-- The words of a text, in small letters without accents, one blank between two. Only the beginning of a text is
-- looked at, and of a word, so that no text is too large for the index.
CREATE FUNCTION search_words(content text) RETURNS text LANGUAGE sql IMMUTABLE
RETURN btrim(regexp_replace(regexp_replace(lower(
    regexp_replace(normalize(substr(content, 1, 100000), NFD), '[\u0300-\u036f]+', '', 'g') COLLATE pg_c_utf8),
    '[^[:alnum:]]+' COLLATE pg_c_utf8, ' ', 'g'), '([^ ]{255})[^ ]+', '\1', 'g'));

CREATE FUNCTION search_index(content text) RETURNS tsvector LANGUAGE sql IMMUTABLE
RETURN array_to_tsvector(array_remove(string_to_array(search_words(content), ' '), ''));

-- What a message must have to be a hit: each of the words that were typed, which may fall into several, side by side.
-- The last of all may be the beginning of a longer one.
CREATE FUNCTION search_patterns(words text[], is_prefix boolean) RETURNS text[] LANGUAGE sql IMMUTABLE
RETURN (
    SELECT coalesce(array_agg(
        '% ' || search_words(word) || CASE WHEN is_prefix AND number = cardinality(words) THEN '%' ELSE ' %' END
    ), '{}')
    FROM unnest(words) WITH ORDINALITY AS typed (word, number));

CREATE FUNCTION search_query(words text[], is_prefix boolean) RETURNS tsquery LANGUAGE sql IMMUTABLE
RETURN (
    SELECT string_agg(
        '''' || lexeme || '''' || CASE WHEN is_prefix AND number = last THEN ':*' ELSE '' END, ' & ')::tsquery
    FROM (
        SELECT lexeme, row_number() OVER () AS number, count(*) OVER () AS last
        FROM string_to_table(search_words(array_to_string(words, ' ')), ' ') AS found (lexeme)
        WHERE lexeme <> '') AS numbered);
