import PrismConfig
import PrismProtocol
import PrismStore

/// How a namespace's pipeline sends this device's changes of records: when that begins, and which changes it takes.
enum PipelineRecords {
  /// nil: no table is declared, or nothing is requested.
  static func due(_ pipeline: isolated NamespacePipeline) -> Duration? {
    guard let configuration = pipeline.settings.configuration, !configuration.tables.isEmpty else { return nil }
    return pipeline.records.schedule.due(interval: configuration.recordInterval)
  }

  /// Changes that are made from now on wait for the next synchronization, so that one that lasts does not follow them.
  static func begin(_ pipeline: isolated NamespacePipeline) {
    pipeline.records.schedule.begin(now: pipeline.now)
    pipeline.begin { pipeline in
      await PipelineStores.mark(pipeline)
      let reading = await pipeline.parts.store.records
      pipeline.records.bound = reading.bound
      let both = (pipeline.settings.configuration?.tables ?? []).filter { $0.direction == .both }
      if both.contains(where: { reading.isWaiting($0.name, in: pipeline.namespace) }) {
        PipelinePulls.beginBeforeUpload(pipeline)
      } else {
        pipeline.want(.records)
      }
      pipeline.records.schedule.didBegin()
    }
  }

  /// No synchronization is under way, or asked for without waiting for the interval.
  static func isQuiet(_ pipeline: isolated NamespacePipeline) -> Bool {
    let records = pipeline.records
    return !records.schedule.isBeginning && !records.pulls.isRunning
      && (!records.schedule.isHastened || due(pipeline) == nil)
  }

  /// The answer to a command does not wait for the interval. Those that follow soon go with it.
  static func answered(_ pipeline: isolated NamespacePipeline) {
    pipeline.records.schedule.hasten(to: pipeline.now + RecordSchedule.mergeWindow)
    pipeline.arm()
  }

  /// The first gate that keeps changes of a table from leaving; nil: they are on their way.
  static func explain(_ pipeline: isolated NamespacePipeline, _ table: RecordTableName) -> ShutGate? {
    pipeline.gates(.records).shutGate(for: table, due: due(pipeline))
  }

  /// Changes that were left, or came since, are for the next synchronization.
  static func drained(_ pipeline: isolated NamespacePipeline) {
    pipeline.begin { pipeline in
      if await pipeline.parts.store.records.hasWork(pipeline.namespace) {
        pipeline.records.schedule.request(now: pipeline.now)
      }
      pipeline.arm()
    }
  }

  /// The changes that a packet may take now. Those of a `both` table leave only soon after the server's changes came.
  static func claim(_ pipeline: isolated NamespacePipeline) -> RecordClaim {
    let wifiOnly = pipeline.gates(.records).isMetered ? pipeline.settings.wifiOnlyTables : []
    let interval = pipeline.settings.configuration?.recordInterval ?? .zero
    var tables: [RecordTable] = []
    for table in pipeline.settings.configuration?.tables ?? [] {
      let isPulled = pipeline.records.pulledAt[table.name].map { pipeline.now - $0 <= interval } ?? false
      let isHeld = ReportType(table.name.text).map(wifiOnly.contains) ?? false
      if !isHeld, table.direction != .both || isPulled { tables.append(table) }
    }
    return RecordClaim(tables: tables, bound: pipeline.records.bound)
  }
}
