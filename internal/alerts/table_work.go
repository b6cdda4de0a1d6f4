package alerts

// work are alerts on the queue and on the nodes that work on it.
func work() []Alert {
	return []Alert{
		above("MakolaDeadLetters", "makola_queue_dead", "", "queue", 0).ticket().
			says("`makola_queue_dead` > 0", "{{ $labels.queue }}: jobs were given up. Run makola jobs dead.", "jobs-dead").
			playing([]string{series(`makola_queue_dead{queue="webhook"}`, 1)}, []string{series(`makola_queue_dead{queue="webhook"}`, 0)}),
		above("MakolaPaymentsOverdue", "makola_jobs_overdue_seconds", `queue="payment"`, "instance", 60).
			says("`makola_jobs_overdue_seconds` of `payment` above 60", "{{ $labels.instance }}: this node is late with its open payments. Check its log and its processor load.", "jobs-overdue").
			playing([]string{series(`makola_jobs_overdue_seconds{queue="payment",instance="a"}`, 61)}, []string{series(`makola_jobs_overdue_seconds{queue="payment",instance="a"}`, 60)}),
		above("MakolaWebhooksWait", "makola_queue_oldest_seconds", `queue="webhook"`, "", 600).ticket().
			says("`makola_queue_oldest_seconds` of `webhook` above 600", "Webhooks have waited more than ten minutes. Run makola webhooks list and look for one receiver that fails.", "webhooks-wait"),
		Alert{Name: "MakolaNodeBeginsNothing", Severity: Page, Expr: `makola_job_lease_holds == 0`}.lasting("1m").
			says("`makola_job_lease_holds` 0 for a minute", "{{ $labels.instance }}: this node begins no job; its database is down, full or read-only. Check the database.", "database-down").
			playing([]string{series(`makola_job_lease_holds{instance="a"}`, 0)}, []string{series(`makola_job_lease_holds{instance="a"}`, 1)}),
		Alert{Name: "MakolaJobMaintenanceStuck", Severity: Page, Expr: `makola_job_maintenance_seconds > 60`}.
			says("`makola_job_maintenance_seconds` above 60", "{{ $labels.instance }}: this node does not take over jobs of dead nodes or fetch waiting jobs. Check its log and the database.", "database-down").
			playing([]string{series(`makola_job_maintenance_seconds{instance="a"}`, 61)}, []string{series(`makola_job_maintenance_seconds{instance="a"}`, 60)}),
		above("MakolaPeriodicWorkStuck", "makola_periodic_seconds", "", "work", 1800).ticket().
			says("`makola_periodic_seconds` above 1800, greatest of all nodes", "{{ $labels.work }}: periodic work has not ended for half an hour. Search the log for its name.", "jobs-overdue").
			playing([]string{series(`makola_periodic_seconds{work="check"}`, 1801)}, []string{series(`makola_periodic_seconds{work="check"}`, 1800)}),
		above("MakolaNoticesWait", "makola_notices_waiting_seconds", "", "channel", 900).ticket().
			says("`makola_notices_waiting_seconds` of a channel above 900", "{{ $labels.channel }}: notices are not delivered. Run makola doctor and read the server's log.", "notices-wait").
			playing([]string{series(`makola_notices_waiting_seconds{channel="email"}`, 901)}, []string{series(`makola_notices_waiting_seconds{channel="email"}`, 900)}),
		above("MakolaNoticesRefused", "makola_notices_failed", "", "channel", 0).ticket().
			says("`makola_notices_failed` of a channel > 0", "{{ $labels.channel }}: notices were refused or given up. Look in the log for the reason, such as an address that does not exist.", "notices-wait").
			playing([]string{series(`makola_notices_failed{channel="email"}`, 1)}, []string{series(`makola_notices_failed{channel="email"}`, 0)}),
		Alert{Name: "MakolaLeasesLost", Severity: Ticket, Expr: `sum by (instance) (increase(makola_job_leases_lost_total[15m])) > 0`}.
			says("`makola_job_leases_lost_total` grows", "{{ $labels.instance }}: this node lost its lease, and other nodes took over its jobs. Check its load and its connection to the database.", "database-down").
			playing([]string{growing(`makola_job_leases_lost_total{instance="a"}`, 1)}, []string{series(`makola_job_leases_lost_total{instance="a"}`, 7)}),
	}
}

// messages are alerts on texts and one-time passwords.
func messages() []Alert {
	return []Alert{
		Alert{Name: "MakolaMessagesWait", Severity: Page, Expr: `max by (queue) (makola_queue_oldest_seconds{queue="sms_small_live"}) > 120 or max by (queue) (makola_queue_oldest_seconds{queue=~"sms_bulk_live|sms_own_texts_live"}) > 3600`}.
			says("`makola_queue_oldest_seconds` of `sms_small_live` above 120, of `sms_bulk_live` or `sms_own_texts_live` above 3600", "{{ $labels.queue }}: accepted messages are not sent. Check the binds with makola providers list.", "messages-wait").
			playing([]string{series(`makola_queue_oldest_seconds{queue="sms_own_texts_live"}`, 3601)},
				[]string{series(`makola_queue_oldest_seconds{queue="sms_small_live"}`, 120), series(`makola_queue_oldest_seconds{queue="sms_bulk_live"}`, 3600), series(`makola_queue_oldest_seconds{queue="sms_own_texts_live"}`, 3600)}),
		Alert{Name: "MakolaNoBind", Severity: Page, Expr: `max by (mode) (makola_sms_connected) == 0`}.lasting("2m").
			says("`makola_sms_connected` 0 on all nodes for 2 minutes", "{{ $labels.mode }}: no node is connected to a message centre; nothing is sent and no receipt arrives. Check the log for the refused bind.", "messages-wait").
			playing([]string{series(`makola_sms_connected{mode="live",instance="a"}`, 0), series(`makola_sms_connected{mode="live",instance="b"}`, 0)},
				[]string{series(`makola_sms_connected{mode="live",instance="a"}`, 0), series(`makola_sms_connected{mode="live",instance="b"}`, 1)}),
		above("MakolaBindDown", "makola_sms_binds_down", "", "mode", 0).lasting("2m").
			says("`makola_sms_binds_down` > 0 for 2 minutes", "{{ $labels.mode }}: a bind with an operator is down. Run makola providers list, then check the log for the refused bind.", "messages-wait").
			playing([]string{series(`makola_sms_binds_down{mode="live"}`, 1)}, []string{series(`makola_sms_binds_down{mode="live"}`, 0)}),
		above("MakolaReceiptsUnmatched", "makola_sms_receipts_unmatched", "", "", 100).lasting("10m").ticket().
			says("`makola_sms_receipts_unmatched` above 100 for 10 minutes", "Delivery receipts match no message, so delivered messages keep the status submitted. Run makola providers list and read the line sms_receipts.", "receipts-unmatched"),
		above("MakolaRangeClosed", "makola_otp_taps_closed", "", "", 0).ticket().
			says("`makola_otp_taps_closed` > 0", "One-time passwords of a customer to a range of numbers are refused, because too few were verified. Run makola otp ranges.", "otp-range-closed"),
	}
}

const failed = `makola_http_requests_total{code=~"5.."}`

// upkeep are alerts on the machine, the backups and the interface.
func upkeep() []Alert {
	return []Alert{
		Alert{Name: "MakolaBackupOld", Severity: Page, Expr: `time() - max(makola_backup_last_timestamp_seconds) > 26 * 3600`}.
			says("`makola_backup_last_timestamp_seconds` older than 26 hours, or 0", "The last backup is older than 26 hours, or there is none. Run makola backup create, or makola backup record from your own tool.", "backup-old").
			playing([]string{series("makola_backup_last_timestamp_seconds", -26*3600)}, []string{growing("makola_backup_last_timestamp_seconds", 60)}),
		above("MakolaDiskNearlyFull", "makola_disk_short", "", "instance", 0).
			says("`makola_disk_short` > 0", "{{ $labels.instance }}: the disk is nearly full; contacts, campaigns and sender IDs are refused, payments continue. Free space or enlarge the disk.", "disk-full").
			playing([]string{series(`makola_disk_short{instance="a"}`, 1)}, []string{series(`makola_disk_short{instance="a"}`, 0)}),
		Alert{Name: "MakolaServerErrors", Severity: Page,
			Expr: `sum by (code) (increase(` + failed + `[10m])) > 5 and sum by (code) (increase(` + failed + `[10m])) > 0.01 * scalar(sum(increase(makola_http_requests_total[10m])))`}.lasting("2m").
			says("`makola_http_requests_total`: more than five answers of a code of 500 and above in ten minutes, and more than 1 % of all, for 2 minutes",
				"{{ $labels.code }}: more than 1 % of requests fail. Look in the log by request id; without a line there, a provider is paused or fails.", "requests-fail").
			playing([]string{growing(`makola_http_requests_total{code="503"}`, 1), growing(`makola_http_requests_total{code="200"}`, 20)},
				[]string{growing(`makola_http_requests_total{code="422"}`, 9), stepping(`makola_http_requests_total{code="503"}`, 3, 4),
					growing(`makola_http_requests_total{code="502"}`, 1), growing(`makola_http_requests_total{code="200"}`, 200)}),
		Alert{Name: "MakolaInternalError", Severity: Ticket, Expr: `sum by (route) (increase(makola_http_requests_total{code="500"}[1h])) > 0`}.
			says("`makola_http_requests_total` of the code 500 grows", "{{ $labels.route }}: a request failed with an error of Makola. Look for its error in the log and report it.", "requests-fail").
			playing([]string{stepping(`makola_http_requests_total{code="500",route="/a"}`, 3, 4)}, []string{series(`makola_http_requests_total{code="500",route="/a"}`, 3), growing(`makola_http_requests_total{code="503",route="/a"}`, 1)}),
	}
}
