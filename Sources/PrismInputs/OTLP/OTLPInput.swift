import Dispatch
public import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismPacket
import PrismProtocol

/// OTLP over HTTP (docs/otlp.md): each log record, span and metric becomes a report.
///
/// Requests are decoded on a queue of its own, one at a time.
public actor OTLPInput: HTTPInput {
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

  /// As `HTTPInput` says.
  public nonisolated var paths: [String] { OTLPSignal.allCases.map(\.path) }
  /// As `HTTPInput` says.
  public nonisolated var bodyBytesMax: Int { OTLPLimits.bodyBytesMax }

  /// As `HTTPInput` says.
  public nonisolated func name(of request: InputRequest) -> String {
    "otlp_" + (OTLPSignal(path: request.path)?.rawValue ?? "")
  }

  /// As `HTTPInput` says.
  public nonisolated func refusal(of request: InputRequest) -> (status: Int, message: String)? {
    guard snapshot().daemon.otlp.isOn else {
      return (404, "OTLP is off here; set otlp.listen or otlp.namespace in prismd.yaml")
    }
    guard OTLPEncoding(contentType: request.contentType) == nil else { return nil }
    return (415, "Content-Type must be application/x-protobuf or application/json")
  }

  /// Answers a request, after the commit of its reports.
  public nonisolated func answer(
    to request: InputRequest, status: Int, message: String, retrySeconds: Int?
  ) -> InputAnswer {
    let encoding = OTLPEncoding(contentType: request.contentType) ?? .json
    return InputAnswer(OTLPAnswer(fault: OTLPFault(status, message), encoding, retrySeconds: retrySeconds))
  }

  /// Answers a request, after the commit of its reports.
  public func answer(
    _ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink
  ) async -> InputAnswer {
    let encoding = OTLPEncoding(contentType: request.contentType) ?? .json
    guard let signal = OTLPSignal(path: request.path) else {
      return InputAnswer(OTLPAnswer(fault: OTLPFault(404, "there is no such path"), encoding))
    }
    do throws(OTLPFault) {
      if !sent.isLoaded {
        let note = await sent.stored(by: sink, in: snapshot().daemon.otlp.namespaceText)
        sent.load(note, now: time.uptime)
      }
      // A body that unpacks to more than was reserved for it is unpacked, and read, while no other one is.
      // A few bytes of zstd may ask for a window of 8 MiB.
      let small = request.packing == .zstd ? nil : try Self.unpacked(request, bytesMax: request.roomBytes)
      let answer =
        if let small {
          await take(small, request, signal, encoding, peer, sink)
        } else {
          await LargeTurns.shared.run(for: peer.accountID) {
            await self.takeLarge(request, signal, encoding, peer, sink)
          }
        }
      if answer.retrySeconds != nil { request.receipt.settle(.lost) }
      return answer
    } catch {
      return InputAnswer(OTLPAnswer(fault: error, encoding))
    }
  }

  /// - Returns: nil if it has more than `bytesMax` bytes.
  private static func unpacked(_ request: InputRequest, bytesMax: Int) throws(OTLPFault) -> [UInt8]? {
    guard let packing = request.packing else { return request.body.count <= bytesMax ? request.body : nil }
    do throws(PacketError) {
      return try PackedReader.unpack(request.body[...], PacketEncoding(packing), bytesMax: bytesMax)
    } catch .tooLarge {
      return nil
    } catch { throw OTLPFault(400, "the body is not \(packing.rawValue), as Content-Encoding says") }
  }

  private func takeLarge(
    _ request: InputRequest, _ signal: OTLPSignal, _ encoding: OTLPEncoding, _ peer: ReportingPeer,
    _ sink: any SubmissionSink
  ) async -> InputAnswer {
    do throws(OTLPFault) {
      guard let body = try Self.unpacked(request, bytesMax: OTLPLimits.bodyBytesMax) else { throw .tooManyBytes }
      return await take(body, request, signal, encoding, peer, sink)
    } catch { return InputAnswer(OTLPAnswer(fault: error, encoding)) }
  }

  private func take(
    _ body: [UInt8], _ request: InputRequest, _ signal: OTLPSignal, _ encoding: OTLPEncoding, _ peer: ReportingPeer,
    _ sink: any SubmissionSink
  ) async -> InputAnswer {
    do throws(OTLPFault) {
      let found = try Self.decoded(body, signal, encoding)
      let letter = signal.type.dropFirst("otel.".count).first ?? "o"
      let prefix = sent.prefix(of: body, letter, from: peer.accountID, request.receipt, now: time.uptime)
      let reports = OTLPReports(signal, snapshot(), idPrefix: prefix, peer: peer)
      var (outcome, parts) = (OTLPOutcome(signal), OTLPParts(reports, found, body, OTLPRecordReader(signal, encoding)))
      while let part = parts.next() {
        let note = sent.note(in: snapshot().daemon.otlp.namespaceText, now: time.uptime)
        await sink.submit(part.reports, run: part.run, note, userID: peer.accountID) { outcome.take($0, $1) }
      }
      for (reason, count) in parts.unusable.sorted(by: { $0.key < $1.key }) {
        outcome.refuse(Refusal(.badRequest, "a record is left out: \(reason)"), count: count)
      }
      return InputAnswer(OTLPAnswer(signal, encoding, taken: outcome.taken, refused: outcome.refused))
    } catch { return InputAnswer(OTLPAnswer(fault: error, encoding)) }
  }

  private static func decoded(
    _ body: [UInt8], _ signal: OTLPSignal, _ encoding: OTLPEncoding
  ) throws(OTLPFault) -> OTLPRequest {
    switch encoding {
    case .protobuf: try OTLPRequest(protobuf: body, signal)
    case .json: try OTLPRequest(json: body, signal)
    }
  }
}

extension InputAnswer {
  init(_ answer: OTLPAnswer) {
    self.init(
      status: answer.status, contentType: answer.encoding.rawValue, body: answer.body, retrySeconds: answer.retrySeconds
    )
  }
}

extension PacketEncoding {
  fileprivate init(_ packing: InputRequest.Packing) {
    self =
      switch packing {
      case .gzip: .gzip
      case .zstd: .zstd
      }
  }
}
