-- The next delivery is looked for at each endpoint, so that one that hangs does not stand before the others of its app.
DROP INDEX webhook_deliveries_due;
CREATE INDEX webhook_deliveries_due
ON webhook_deliveries (app_name, endpoint_id, next_at, delivery_id) WHERE state = 'waiting';
