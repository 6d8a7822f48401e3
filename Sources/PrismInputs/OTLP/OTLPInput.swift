package import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismPacket
package import PrismProtocol

/// OTLP over HTTP (docs/otlp.md): each log record, span and metric becomes a report.
///
/// Requests are decoded on a queue of its own, one at a time.
public actor OTLPInput {
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.otlp")
  /// The queue that decodes.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let snapshot: @Sendable () -> Snapshot
  private let time: any TimeSource
  private var sent = SentRequests("otlp")

  /// - Parameter snapshot: the configuration in force, asked for each request.
  public init(time: any TimeSource = SystemTime(), snapshot: @escaping @Sendable () -> Snapshot) {
    (self.time, self.snapshot) = (time, snapshot)
  }

  /// The largest body, in bytes, as it comes.
  package nonisolated var bodyBytesMax: Int { OTLPLimits.bodyBytesMax }

  /// The name of a request in counters.
  package nonisolated func name(of request: InputRequest) -> String {
    "otlp_" + (OTLPSignal(path: request.path)?.rawValue ?? "")
  }

  /// Judges a request by its head. - Returns: nil: its body is read; else the status and the message of the answer.
  package nonisolated func refusal(of request: InputRequest) -> (status: Int, message: String)? {
    guard snapshot().daemon.otlp.isOn else {
      return (404, "OTLP is off here; set otlp.listen or otlp.namespace in prismd.yaml")
    }
    guard OTLPEncoding(contentType: request.contentType) == nil else { return nil }
    return (415, "Content-Type must be application/x-protobuf or application/json")
  }

  /// The answer to a request that is refused before it was read whole.
  package nonisolated func answer(to request: InputRequest, status: Int, message: String) -> InputAnswer {
    (OTLPEncoding(contentType: request.contentType) ?? .json).answer(OTLPFault(status, message))
  }

  /// The requests whose answers are lost, when all connections have ended; nil: there was no request.
  package func lastNote() -> BatchNote? { sent.lastNote(in: snapshot().daemon.otlp.namespaceText, now: time.uptime) }

  /// Answers a request, after the commit of its reports.
  package func answer(
    _ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink
  ) async -> InputAnswer {
    let encoding = OTLPEncoding(contentType: request.contentType) ?? .json
    do throws(OTLPFault) {
      guard let signal = OTLPSignal(path: request.path) else { throw OTLPFault(404, "there is no such path") }
      if !sent.isLoaded {
        let note = await sent.stored(by: sink, in: snapshot().daemon.otlp.namespaceText)
        sent.load(note, now: time.uptime)
      }
      // A body that unpacks to more than was reserved for it is unpacked, and read, while no other one is.
      // A few bytes of zstd may ask for a window of 8 MiB.
      let small = request.packing == .zstd ? nil : try Self.unpacked(request, bytesMax: request.roomBytes)
      let answer =
        if let small {
          try await take(small, request, signal, encoding, peer, sink)
        } else {
          try await LargeTurns.shared.run(for: peer.accountID) { () async throws(OTLPFault) -> InputAnswer in
            guard let body = try Self.unpacked(request, bytesMax: OTLPLimits.bodyBytesMax) else { throw .tooManyBytes }
            return try await self.take(body, request, signal, encoding, peer, sink)
          }
        }
      if answer.retrySeconds != nil { request.receipt.settle(.lost) }
      return answer
    } catch {
      return encoding.answer(error)
    }
  }

  /// - Returns: nil if it has more than `bytesMax` bytes.
  private static func unpacked(_ request: InputRequest, bytesMax: Int) throws(OTLPFault) -> [UInt8]? {
    let packing = request.packing
    if packing == .none { return request.body.count <= bytesMax ? request.body : nil }
    do throws(PacketError) {
      return try PackedReader.unpack(request.body[...], packing, bytesMax: bytesMax)
    } catch .tooLarge {
      return nil
    } catch { throw OTLPFault(400, "the body is not \(packing.rawValue), as Content-Encoding says") }
  }

  private func take(
    _ body: [UInt8], _ request: InputRequest, _ signal: OTLPSignal, _ encoding: OTLPEncoding, _ peer: ReportingPeer,
    _ sink: any SubmissionSink
  ) async throws(OTLPFault) -> InputAnswer {
    let found =
      switch encoding {
      case .protobuf: try OTLPRequest(protobuf: body, signal)
      case .json: try OTLPRequest(json: body, signal)
      }
    let letter = signal.type.dropFirst("otel.".count).first ?? "o"
    let prefix = sent.prefix(of: body, letter, from: peer.accountID, request.receipt, now: time.uptime)
    let reports = OTLPReports(signal, snapshot(), idPrefix: prefix, peer: peer)
    var outcome = OTLPOutcome(signal: signal)
    var parts = OTLPParts(reports, found, body, OTLPRecordReader(signal, encoding))
    while let part = parts.next() {
      let note = sent.note(in: snapshot().daemon.otlp.namespaceText, now: time.uptime)
      let group = SubmissionGroup(
        part.reports, note: note, run: part.run, userID: peer.accountID, isReserved: true)
      outcome.take(part, await sink.submit(group))
    }
    for (reason, count) in parts.unusable.sorted(by: { $0.key < $1.key }) {
      let refusal = Refusal(.badRequest, "a record is left out: \(reason)")
      outcome.refuse(refusal, count: count)
      await sink.refuse(refusal, count: count, type: signal.type, namespace: nil)
    }
    return outcome.answer(encoding)
  }
}
