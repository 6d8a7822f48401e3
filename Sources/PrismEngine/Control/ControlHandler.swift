import PrismAdmission
import PrismBase
import PrismConfig
public import PrismControl
public import PrismProtocol
import PrismStore
import Synchronization

/// Answers what `prismctl` asks (docs/control-protocol.md). Every answer ends with a line that has `"done":true`.
public struct ControlHandler: Sendable {
  let engine: Engine
  let version: String
  let configuration: any ConfigurationSource
  let remote: RemoteConfigurationClient?
  let process: @Sendable () -> ProcessFigures
  let counts: @Sendable () async -> (refused: [String: Int], repeated: Int)

  /// - Parameter counts: reports since the start that were refused, by the code that was answered, or came again.
  /// - Parameter process: what the daemon takes of the machine at present.
  public init(
    engine: Engine, version: String, configuration: any ConfigurationSource, remote: RemoteConfigurationClient? = nil,
    counts: @escaping @Sendable () async -> (refused: [String: Int], repeated: Int) = { ([:], 0) },
    process: @escaping @Sendable () -> ProcessFigures
  ) {
    (self.engine, self.version, self.configuration, self.remote) = (engine, version, configuration, remote)
    (self.counts, self.process) = (counts, process)
  }

  /// - Parameter caller: decides what is answered, and is named in the log with what changes something.
  public func handle(_ request: ControlRequest, from caller: ControlCaller) -> AsyncStream<JSONValue> {
    if let refused = refusal(of: request.command, from: caller) { return Self.only(refused) }
    let note = ControlLog(engine.parts.log, request, caller)
    // A listing of any length is made line by line, as fast as it is read.
    if request.command == .export {
      do throws(Refused) { return try export(request, note) } catch { return Self.only(error) }
    }
    if request.command == .carry { return CarryCommands(handler: self).carry(request, note) }
    if request.command == .tail, mayFollow(request) { return tail(request) }
    let (stream, continuation) = AsyncStream.makeStream(of: JSONValue.self, bufferingPolicy: .bufferingNewest(64))
    let task = Task {
      do throws(Refused) {
        let last = try await answer(request, note) { continuation.yield($0) }
        note.write(last)
        continuation.yield(.object(last + [Answers.done(true)]))
      } catch {
        note.write(failure: error.message)
        continuation.yield(error.line)
      }
      continuation.finish()
    }
    continuation.onTermination = { _ in task.cancel() }
    return stream
  }

  typealias Refused = Answers.Failure

  private func refusal(of command: ControlRequest.Command, from caller: ControlCaller) -> Refused? {
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
    case .status: return [Answers.status(await status())]
    case .network: return [Answers.network(network(hasReason: true))]
    case .flush: return try await FlushCommand(handler: self).run(request, note, progress)
    case .reload: return try await reload()
    case .configShow: return await showConfiguration(request)
    case .configDiff: return try await diffConfiguration(request)
    case .explain: return [Answers.text(try await explain(request))]
    case .trace: return try await trace(request)
    case .remove: return try await remove(request)
    case .deadList: return try await listDead(request)
    case .deadShow: return try await showDead(request)
    case .deadRequeue, .deadDrop: return try await settleDead(request)
    case .ack:
      let isNews = engine.parts.store.acknowledge()
      return [Answers.text(isNews ? "status does not show it any more" : "there is nothing to acknowledge")]
    case .acceptStore: return try await AcceptStoreCommand(handler: self).run(request)
    case .doctor: return [Answers.findings(await Doctor(engine: engine, process: process()).findings())]
    case .tail: throw unknown(try namespace(request))
    case .carrySettle: return try await CarryCommands(handler: self).settle(request)
    case .export, .carry: throw Refused(64, "this prismd does not know `\(request.command.rawValue)`")
    }
  }

  func namespace(_ request: ControlRequest) throws(Refused) -> NamespaceName? {
    guard let text = request["namespace"]?.string else { return nil }
    guard let namespace = NamespaceName(text) else {
      throw Refused(64, "a namespace's name is 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    return namespace
  }

  /// - Parameter question: for a request without one.
  func namespace(_ request: ControlRequest, orAsk question: String) throws(Refused) -> NamespaceName {
    guard let namespace = try namespace(request) else { throw Refused(64, question) }
    return namespace
  }

  func pipeline(of namespace: NamespaceName) async throws(Refused) -> NamespacePipeline {
    guard let pipeline = await engine.pipelines[namespace] else { throw unknown(namespace) }
    return pipeline
  }

  /// A typing error would show nothing for ever. Of refused reports any name may be followed: it may be what is wrong.
  private func mayFollow(_ request: ControlRequest) -> Bool {
    guard let text = request["namespace"]?.string, request["refused"]?.bool != true else { return true }
    return NamespaceName(text).map { engine.hub.current.namespaces[$0] != nil } ?? false
  }

  private static func only(_ refused: Refused) -> AsyncStream<JSONValue> {
    AsyncStream {
      $0.yield(refused.line)
      $0.finish()
    }
  }

  func asking<Result>(_ body: () async throws -> Result) async throws(Refused) -> Result {
    do { return try await body() } catch { throw Refused(69, "\(error)") }
  }

  func unknown(_ namespace: NamespaceName?) -> Refused {
    let name = namespace?.text ?? ""
    let nearest = NearestName.of(name, among: engine.hub.current.namespaces.keys.map(\.text))
    let hint = nearest.map { "; did you mean `\($0)`?" } ?? ""
    return Refused(1, "there is no namespace `\(name)`\(hint) (`prismctl status --all` lists them)")
  }

  // MARK: `prismctl tail`: reports as they are admitted or refused

  /// `{"following":true}`, then `{"report":{…}}` for each report, and `{"skipped":12}` for reports that a slow reader
  /// missed. It ends with its reader. The place in the feed ends with the stream.
  func tail(_ request: ControlRequest) -> AsyncStream<JSONValue> {
    let subscription = engine.feed.follow(
      ReportFeed.Filter(
        namespace: request["namespace"]?.string, type: request["type"]?.string,
        isRefusedOnly: request["refused"]?.bool == true))
    let greeting = Mutex<JSONValue?>(["following": true])
    return AsyncStream {
      if let first = greeting.withLock({ $0.take() }) { return first }
      switch await subscription.next() {
      case .report(let report): return ["report": report.controlJSON]
      case .skipped(let count): return ["skipped": .int(count)]
      case nil: return nil
      }
    }
  }
}

/// `prismctl accept-store`: an operator says that the store which answered last is the server's.
struct AcceptStoreCommand {
  let handler: ControlHandler

  func run(_ request: ControlRequest) async throws(ControlHandler.Refused) -> [JSONValue.Member] {
    let namespace = try handler.namespace(request, orAsk: "accept-store: of which namespace?")
    let pipeline = try await handler.pipeline(of: namespace)
    switch try await handler.asking({ try await pipeline.acceptStore() }) {
    case .nothingKnown:
      throw ControlHandler.Refused(
        1, "no store of \(namespace) gave its identity yet: it has no table of records, or an older collector")
    case .accepted(let store, isNews: true):
      return [
        Answers.text(
          "the store \(store) is accepted: its deletions are taken, and records that it does not have are deleted")
      ]
    case .accepted(let store, isNews: false), .isOther(let store):
      return [Answers.text("the store \(store) was accepted before")]
    }
  }
}
