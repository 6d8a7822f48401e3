import PrismConfig
import PrismProtocol
import PrismStore

// The synchronization of records: when it begins, and which changes it takes.
extension NamespacePipeline {
  /// nil: no table is declared, or nothing is requested.
  var recordsDue: Duration? {
    guard let configuration = settings.configuration, !configuration.records.isEmpty else { return nil }
    return recordSchedule.due(interval: configuration.recordInterval)
  }

  /// Changes that are made from now on wait for the next synchronization, so that one that lasts does not follow them.
  func synchronizeRecords() {
    recordSchedule.begin(now: now)
    begin { pipeline in
      pipeline.recordSchedule.bound = await pipeline.parts.store.records.bound
      pipeline.want(.records)
    }
  }

  /// Changes that were left, or came since, are for the next synchronization.
  func recordsDrained() {
    begin { pipeline in
      if await pipeline.parts.store.records.hasWork(pipeline.namespace) {
        pipeline.recordSchedule.request(now: pipeline.now)
      }
      pipeline.arm()
    }
  }

  /// The changes that a packet may take now.
  var recordClaim: RecordClaim {
    let wifiOnly = gates(.records).isMetered ? settings.wifiOnlyTables : []
    let tables = (settings.configuration?.records ?? []).filter {
      !(ReportType($0.name.text).map(wifiOnly.contains) ?? false)
    }
    return RecordClaim(tables: tables, bound: recordSchedule.bound)
  }
}
