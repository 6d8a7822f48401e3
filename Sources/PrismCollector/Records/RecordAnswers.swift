import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import Synchronization

/// Answers `GET /prism/records`: the server's changes that a device has to learn (docs/records.md, "The question").
struct RecordAnswers {
  let collector: Collector

  /// - Throws: 400 for a wrong header or parameter; 401 and 403 for the token, the key and the proof of the device. 403 for a
  ///   revoked device, 429 for its limits; 503 if the answer can't be made now.
  func answer(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let (openers, devices) = (collector.openers, collector.devices)
    do throws(CollectorRefusal) {
      try await collector.access.checkSender(request)
      let question: DownQuestion
      do throws(PacketHeaderFault) {
        question = try DownQuestion(query: { request.parameter($0) }, { request.headers($0) })
      } catch { throw CollectorRefusal(400, code: .header, error.description) }
      try await openers.check(question, request.header("prism-mac"))
      try devices.check(question.deviceID)
      try await devices.standings.check(question.deviceID)
      let accepts = request.header("prism-accept")?.split(separator: ",").contains { $0.filter { $0 != " " } == "zstd" }
      return try await answer(question, accepts == true ? .zstd : .gzip)
    } catch {
      collector.counts.count(.recordQuestions, "refused_\(error.status)")
      collector.refusals.add(error, from: request.peer.address)
      throw error
    }
  }

  private func answer(
    _ question: DownQuestion, _ encoding: PacketEncoding
  ) async throws(CollectorRefusal) -> HTTPResponse {
    let store = collector.store
    let reply = try await collector.access.page.asking.run { () throws(CollectorRefusal) in
      do throws(StoreFailure) {
        return try await store.reply(to: question)
      } catch { throw CollectorRefusal.unreadable }
    }
    switch reply.news {
    case .operations(let operations, let sequence):
      collector.counts.count(.recordQuestions, operations.isEmpty ? "nothing" : "operations")
      let head = DownHead(isFull: false, sequence: sequence, count: operations.count, store: reply.store)
      let packed = try Self.packed([.head(head)] + operations.map { .operation($0) }, encoding)
      var headers = headers(question, reply, encoding)
      headers.lineCount = operations.count + 1
      return try response(headers, packed, sequence)
    case .all(let place, let sequence):
      let snapshot = try await snapshot(of: place, sequence, reply.store, encoding, store)
      collector.counts.count(.recordQuestions, "all")
      var headers = headers(question, reply, encoding)
      headers.lineCount = snapshot.lineCount
      return try response(headers, snapshot.file, snapshot.sequence, snapshot.turn)
    }
  }

  private static func packed(_ lines: [DownLine], _ encoding: PacketEncoding) throws(CollectorRefusal) -> [UInt8] {
    do throws(PacketError) {
      let packer = try DownPacker(encoding: encoding)
      var packed: [UInt8] = []
      for line in lines { packed += try packer.add(line.bytes) }
      return packed + (try packer.finish())
    } catch { throw CollectorRefusal(503, "the answer could not be made: \(error.rawValue)", retryAfterSeconds: 5) }
  }

  private func snapshot(
    of place: RecordPlace, _ sequence: Int64, _ mark: StoreMark, _ encoding: PacketEncoding, _ store: any RecordStore
  ) async throws(CollectorRefusal) -> RecordSnapshot {
    do {
      return try await collector.access.page.snapshots.snapshot(
        of: place, sequence: sequence, in: mark, encoding, from: store)
    } catch let refusal as CollectorRefusal { throw refusal } catch {
      collector.log.fault(
        "collector.records", "an answer with all records can't be made", ["cause": "\(error)"], level: .error)
      throw CollectorRefusal(503, "the records can't be read now", retryAfterSeconds: 30)
    }
  }

  /// Of one line.
  private func headers(_ question: DownQuestion, _ reply: RecordReply, _ encoding: PacketEncoding) -> DownHeaders {
    DownHeaders(
      to: question, lineCount: 1, sentTime: collector.time.unixMilliseconds, isChainBroken: reply.isChainBroken,
      encoding: encoding)
  }

  private func response(
    _ headers: DownHeaders, _ packed: any PieceSource & Sendable, _ sequence: Int64, _ turn: ReadGate.Place? = nil
  ) throws(CollectorRefusal) -> HTTPResponse {
    let body = try collector.openers.body(headers, packed: packed)
    let mac = body.mac.map { [(name: "Prism-Mac", value: $0)] } ?? []
    let byteCount = body.byteCount
    var response = HTTPResponse(
      status: 200, headers: headers.fields + mac + [(DownHeaders.versionName, String(sequence))])
    let reading = Mutex(body)
    response.stream = HTTPStream(byteCount: byteCount) { buffer in
      defer { withExtendedLifetime(turn) {} }
      let count = buffer.count
      let piece = reading.withLock { body in
        [UInt8](unsafeUninitializedCapacity: count) { bytes, read in
          read = (try? body.read(into: UnsafeMutableRawBufferPointer(bytes))) ?? 0  // the connection ends
        }
      }
      buffer.copyBytes(from: piece)
      return piece.isEmpty ? nil : piece.count
    }
    return response
  }
}
