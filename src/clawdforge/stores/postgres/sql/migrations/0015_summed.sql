-- Whoever counts what is said in many sessions sums it up by itself, once for each app, and says so while it does.
DROP TRIGGER session_bytes_summed ON session_bytes;
CREATE TRIGGER session_bytes_summed AFTER DELETE OR UPDATE ON session_bytes FOR EACH ROW
WHEN (current_setting('clawdforge.summed', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION sum_bytes();
