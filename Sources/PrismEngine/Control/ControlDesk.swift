import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

/// Answers what `prismctl` asks (docs/control-protocol.md). Every answer ends with a line that has `"done":true`.
public struct ControlDesk: Sendable {
  let engine: Engine
  let version: String
  let configuration: any ConfigurationSource
  let remote: RemoteDesk?
  let process: @Sendable () -> ProcessFigures

  /// - Parameter process: what the daemon takes of the machine at present.
  public init(
    engine: Engine, version: String, configuration: any ConfigurationSource, remote: RemoteDesk? = nil,
    process: @escaping @Sendable () -> ProcessFigures
  ) {
    (self.engine, self.version, self.configuration, self.remote) = (engine, version, configuration, remote)
    self.process = process
  }

  /// - Parameter caller: decides what is answered, and is named in the log with what changes something.
  public func handle(_ request: ControlRequest, from caller: ControlCaller) -> AsyncStream<JSONValue> {
    if let refused = objection(to: request.command, from: caller) {
      return AsyncStream {
        $0.yield(refused.json)
        $0.finish()
      }
    }
    let note = ControlLog(engine.parts.log, request, caller)
    // A listing of any length is made line by line, as fast as it is read.
    if request.command == .export { return export(request, note) }
    if request.command == .tail { return tail(request) }
    let (stream, continuation) = AsyncStream.makeStream(of: JSONValue.self, bufferingPolicy: .bufferingNewest(64))
    let task = Task {
      do throws(Refused) {
        let last = try await answer(request, note) { continuation.yield($0) }
        note.write(last)
        continuation.yield(.object(last + [.init("done", true)]))
      } catch {
        note.write(failure: error.message)
        continuation.yield(error.json)
      }
      continuation.finish()
    }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  /// Why a request is not done: words and the exit code that `prismctl` ends with.
  struct Refused: Error {
    var exitCode: Int
    var message: String
    init(_ exitCode: Int, _ message: String) { (self.exitCode, self.message) = (exitCode, message) }

    var json: JSONValue { ["error": ["message": .string(message), "exitCode": .int(exitCode)], "done": true] }
  }

  private func objection(to command: ControlRequest.Command, from caller: ControlCaller) -> Refused? {
    guard caller.role < command.role else { return nil }
    engine.parts.log.fault(
      "control.role.\(caller.userID)", "refused a control command",
      ["uid": String(caller.userID), "pid": String(caller.processID), "command": command.rawValue])
    return Refused(
      77,
      "`\(command.rawValue)` is for \(command.role.key), and user \(caller.userID) has the role of \(caller.role.key): "
        + "ask as root, as the daemon's own user, or as a member of \(command.role.key)")
  }

  private func answer(
    _ request: ControlRequest, _ note: ControlLog, _ progress: @Sendable (JSONValue) -> Void
  ) async throws(Refused) -> [JSONValue.Member] {
    switch request.command {
    case .status: return [.init("status", try await status().controlJSON)]
    case .network: return [.init("network", network(hasReason: true).controlJSON)]
    case .flush:
      try await flush(request, note, progress)
      return []
    case .reload: return try await reload()
    case .configShow: return await showConfiguration(request)
    case .configDiff: return try await diffConfiguration(request)
    case .explain: return [.init("text", .string(try await explain(request)))]
    case .trace: return try await trace(request)
    case .remove: return try await remove(request)
    case .deadList: return try await listDead(request)
    case .deadShow: return try await showDead(request)
    case .deadRequeue, .deadDrop: return try await settleDead(request)
    case .doctor: return await doctor()
    case .tail, .export:
      throw Refused(64, "this prismd does not know `\(request.command.rawValue)`")
    }
  }

  func namespace(_ request: ControlRequest) throws(Refused) -> NamespaceName? {
    guard let text = request["namespace"]?.string else { return nil }
    guard let namespace = NamespaceName(text) else {
      throw Refused(64, "a namespace's name is 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    return namespace
  }

  // MARK: flush

  private func flush(
    _ request: ControlRequest, _ note: ControlLog, _ progress: @Sendable (JSONValue) -> Void
  ) async throws(Refused) {
    let namespace = try namespace(request)
    guard await engine.flush(namespace) else { throw unknown(namespace) }
    // Now: waiting may last for hours, and the client may go away meanwhile.
    note.write()
    guard request["wait"]?.bool == true else { return }
    let pipelines = await engine.pipelines.filter { namespace == nil || $0.key == namespace }
    while !Task.isCancelled {
      var isQuiet = true
      for pipeline in pipelines.values where await !pipeline.isQuiet { isQuiet = false }
      let waiting = try await waiting(Set(pipelines.keys))
      progress(["progress": ["waiting": .int(waiting)]])
      if isQuiet { return }
      do { try await engine.parts.time.sleep(for: .milliseconds(100)) } catch { return }  // nobody waits any more
    }
  }

  private func waiting(_ namespaces: Set<NamespaceName>) async throws(Refused) -> Int {
    try await queues().filter { namespaces.contains($0.key) }.values.reduce(0) { sum, kinds in
      kinds.values.reduce(sum) { $0 + $1.ledger[.waiting] + $1.ledger[.claimed] }
    }
  }

  func queues() async throws(Refused) -> [NamespaceName: [ReportKind: QueueStatus]] {
    do { return try await engine.parts.store.status() } catch { throw Refused(69, error.description) }
  }

  func unknown(_ namespace: NamespaceName?) -> Refused {
    Refused(1, "there is no namespace `\(namespace?.text ?? "")`; `prismctl status` lists them")
  }

  // MARK: explain

  private func explain(_ request: ControlRequest) async throws(Refused) -> String {
    guard let namespace = try namespace(request) else { throw Refused(64, "explain: which namespace?") }
    guard let pipeline = await engine.pipelines[namespace] else { throw unknown(namespace) }
    let types = try types(request, of: namespace)
    var lines: [String] = []
    for type in types {
      for kind in ReportKind.allCases {
        let gate = await pipeline.explain(kind, type)
        lines.append("\(type) \(kind.rawValue): \(Self.words(gate))".printable)
      }
    }
    return lines.joined(separator: "\n")
  }

  private func types(_ request: ControlRequest, of namespace: NamespaceName) throws(Refused) -> [ReportType] {
    guard let text = request["type"]?.string else {
      return engine.hub.current.namespaces[namespace]?.monitorList.map(\.type) ?? []
    }
    guard let type = ReportType(text) else { throw Refused(64, "`\(text)` is no type's name") }
    return [type]
  }

  private static func words(_ gate: ShutGate?) -> String {
    guard let gate else { return "nothing keeps it; what waits is on its way" }
    let opens = gate.opensIn.map { ", opens in \($0.secondsRoundedUp) s" } ?? ""
    return "\(gate.gate.rawValue): \(gate.reason)\(opens)"
  }
}
