import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore

// `prismctl explain`: why rows are not leaving, and what else an operator looks for when reports are missing.
extension ControlHandler {
  func explain(_ request: ControlRequest) async throws(Refused) -> String {
    let namespace = try namespace(request, orAsk: "explain: which namespace?")
    let pipeline = try await pipeline(of: namespace)
    let counts = try await asking { try await engine.parts.store.typeCounts(of: namespace) }
    let types = try types(request, of: namespace, counts)
    let queues = try await asking { try await engine.parts.store.status() }[namespace] ?? [:]
    var lines: [String] = []
    let kept = await RecordExplanation(engine: engine).kept(namespace, types)
    for type in types {
      if let unknown = unlisted(type, in: namespace) { lines.append(unknown) }
      for kind in RowKind.reports {
        let gate = await pipeline.explain(kind, type)
        if gate == nil, kept.types.contains(type) { continue }
        let isEmpty = (kind == .meta ? counts.metas : counts.payloads)[type] ?? 0 == 0 && counts.isComplete
        let isSetBack = queues[kind]?.setBack ?? 0 > 0
        lines.append("\(type) \(kind.name): \(ShutGate.words(gate, isEmpty: isEmpty, isSetBack: isSetBack))")
      }
    }
    lines += kept.lines
    if request["type"] == nil { lines += await RecordExplanation(engine: engine).lines(namespace, pipeline) }
    return (lines + losses(of: namespace, queues)).map(\.printable).joined(separator: "\n")
  }

  private func types(
    _ request: ControlRequest, of name: NamespaceName, _ held: TypeCounts
  ) throws(Refused) -> [ReportType] {
    guard let text = request["type"]?.string else {
      let held = Set(held.metas.keys).union(held.payloads.keys)
      return engine.hub.current.namespaces[name]?.monitorList.types(and: held) ?? held.sorted { $0.text < $1.text }
    }
    guard let type = ReportType(text) else { throw Refused(64, "`\(text)` is no type's name") }
    return [type]
  }

  /// nil: the type is in the namespace's monitorList, or the namespace is not configured any more.
  private func unlisted(_ type: ReportType, in namespace: NamespaceName) -> String? {
    guard let list = engine.hub.current.namespaces[namespace]?.monitorList, list.entry(for: type) == nil else {
      return nil
    }
    let nearest = NearestName.of(type.text, among: list.map(\.type.text))
    let hint = nearest.map { "; did you mean `\($0)`?" } ?? "; add it there, then `prismctl reload`"
    return "\(type): is not in monitorList, so reports of it are refused with unknown_type\(hint)"
  }

  /// Why reports are missing that no gate keeps: they were not taken, or were given up.
  private func losses(of namespace: NamespaceName, _ queues: [RowKind: QueueStatus]) -> [String] {
    var lines: [String] = []
    let dead = queues.values.reduce(0) { $0 + $1.ledger[.dead] }
    if dead > 0 {
      lines.append(
        "dead letters: the collector refused \("row".counted(dead)); "
          + "`prismctl dead list --namespace \(namespace)` tells why")
    }
    let setBack = queues.values.reduce(0) { $0 + $1.setBack }
    if setBack > 0 {
      lines.append(
        "set back: something before the collector does not let \("row".counted(setBack)) through (413 without "
          + "its proof); they wait and others go on. Raise its limit, then `prismctl flush`; else they are tried again each 10 min"
      )
    }
    let health = engine.storeHealth
    if !health.takesReports {
      lines.append("store: new reports are refused\(health.cause.map { ": \($0)" } ?? "")")
    }
    guard let configuration = engine.hub.current.namespaces[namespace] else { return lines }
    if !configuration.isGather {
      lines.append("isGather: off in the configuration; new reports are refused with gather_off")
    }
    let bytes = queues.values.reduce(0) { $0 + $1.bytes }
    if configuration.onFull == .refuse, bytes >= configuration.maxStoreBytes / 100 * 99 {
      lines.append(
        "maxStoreMByte: \(bytes) of \(configuration.maxStoreBytes) bytes are used; "
          + "new reports that do not fit are refused with store_full")
    }
    return lines
  }
}

/// Why changes of records and kept reports are not leaving, for `prismctl explain`.
struct RecordExplanation {
  let engine: Engine

  /// Which types are kept, and what lets them go.
  func kept(_ name: NamespaceName, _ types: [ReportType]) async -> (lines: [String], types: Set<ReportType>) {
    guard let configuration = engine.hub.current.namespaces[name] else { return ([], []) }
    func keep(_ type: ReportType) -> MonitoredType.Keep { configuration.monitorList.entry(for: type)?.keep ?? .queue }
    let kept = types.filter { keep($0) != .queue }
    let states = await engine.parts.store.triggers[name] ?? [:]
    let asked = ((try? await engine.parts.store.intents(of: name)) ?? []).map {
      "\($0.reports) reports of trigger \($0.rule) wait until the collector says whether \($0.devices) devices have sent"
    }
    let lines = kept.map { type in
      let rules = configuration.triggers.filter { $0.lets(type) }
      let words = rules.map { rule in
        "trigger \(rule.name) lets \(rule.before) go before and \(rule.after) after a report of \(rule.on), "
          + "and fired \("time".counted(states[rule.name]?.fired ?? 0))"
          + (rule.devicesMax == nil ? "" : "; \(states[rule.name]?.declined ?? 0) times other devices had sent enough")
      }
      return "\(type): kept in the ring\(keep(type) == .memory ? " in memory until the machine restarts" : ""); "
        + (words.isEmpty ? "no trigger lets it go, questions may" : words.joined(separator: "; "))
    }
    let open = await engine.parts.store.openReports(of: name)
    let windows = "reduce: \("report".counted(open)) in windows that are open; `prismctl flush` makes rows of them"
    return (lines + asked + (open > 0 ? [windows] : []), Set(kept))
  }

  /// A line for each table that is declared, or still holds a change.
  func lines(_ namespace: NamespaceName, _ pipeline: NamespacePipeline) async -> [String] {
    let known = await engine.parts.store.records.tables(of: namespace)
    let declared = engine.hub.current.namespaces[namespace]?.tables.map(\.name) ?? []
    let unsent = Set(known.filter { $0.ledger.unsent > 0 }.map(\.name))
    var lines: [String] = []
    for table in unsent.union(declared).sorted() {
      let gate = await pipeline.synchronizing { $0.explain(table) }
      lines.append("\(table) records: \(ShutGate.words(gate, isEmpty: !unsent.contains(table)))")
    }
    let refused = (try? await engine.parts.store.refusedRecords(of: namespace, after: 0, limit: 1)) ?? []
    if let first = refused.first {
      lines.append(
        "\(first.table) records: the server refused changes that wait until their records are changed again; "
          + "`prismctl dead list --namespace \(namespace)` tells why")
    }
    return lines
  }
}

extension ShutGate {
  /// - Parameter isEmpty: no row of the type and kind is held.
  static func words(_ gate: Self?, isEmpty: Bool, isSetBack: Bool = false) -> String {
    guard let gate else {
      if isEmpty { return "nothing waits" }
      return "nothing keeps it" + (isSetBack ? ", but what is set back waits" : "; what waits is on its way")
    }
    return "\(gate.gate.rawValue): \(gate.words)"
  }
}
