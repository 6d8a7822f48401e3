import Glibc
import PrismAdmission
import PrismConfig
import PrismLinux
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("The ingest socket")
struct IngestServerTests {
  private static let line = #"{"type":"net","meta":{"ms":12}}"# + "\n"

  @Test("a report is answered after its commit, with who sent it by the kernel's word")
  func storesAndAnswers() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      rig.sink.hold()
      try await client.send(Self.line)
      #expect(await IngestRig.eventually { rig.sink.isWaitedFor })
      rig.sink.release()
      let answer = try await client.lines(1)[0]
      #expect(answer["status"] == "stored")
      #expect(answer["reportId"]?.string?.utf8.count == RowID.reportIDBytes)
      let context = String(decoding: rig.sink.commits[0][0].context.members, as: UTF8.self)
      #expect(
        context.contains(#""SYS_PEER_UID":"\#(getuid())","#) || context.hasSuffix(#""SYS_PEER_UID":"\#(getuid())""#))
      #expect(context.contains(#""SYS_PEER_PID":"\#(getpid())""#))
    }
  }

  @Test("bytes one at a time and all at once give the same answers", arguments: [1, 7, Int.max])
  func pieces(size: Int) async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      let text =
        #"{"hello":{"app":{"APP_NAME":"t"}}}"# + "\nbad\n"
        + #"{"type":"net","meta":{"ms":1},"payloadBytes":6,"reportId":"a"}"# + "\nab\ncd\n"
        + #"{"type":"none","meta":{"ms":1},"payloadBytes":2}"# + "\n{}"
        + #"{"type":"net","meta":{"ms":2},"reportId":"b"}"# + "\n"
      try await client.send(text, piece: size)
      let answers = try await client.lines(5)
      #expect(answers[0]["hello"]?["version"] == "9.9")
      #expect(answers.map { $0["code"]?.string } == [nil, "bad_request", nil, "unknown_type", nil])
      #expect(answers.map { $0["reportId"]?.string } == [nil, nil, "a", nil, "b"])
      let batches = rig.sink.commits.joined()
      let payloads = batches.flatMap { batch in batch.rows.compactMap { $0.payload.map { Array(batch.arena[$0]) } } }
      #expect(payloads == [Array("ab\ncd\n".utf8)])
    }
  }

  @Test("a first line that is neither JSON nor HTTP is refused in the line protocol", arguments: [1, Int.max])
  func slipOnTheFirstLine(size: Int) async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      try await client.send("rubbish like HTTP/1.1 or so\nrubbish\n" + Self.line, piece: size)
      #expect(try await client.lines(3).map { $0["code"]?.string } == ["bad_request", "bad_request", nil])
      let last = try IngestClient(rig.path)
      try await last.send("nonsense")
      last.finishSending()
      #expect(try await last.lines(1)[0]["code"] == "bad_request")
    }
  }

  @Test("many connections pipeline with payloads at once: every report is stored and answered, in order")
  func pipelines() async throws {
    try await withIngestRig { rig in
      let counts = try await withThrowingTaskGroup(of: Int.self) { group in
        for connection in 0..<8 {
          group.addTask {
            let client = try IngestClient(rig.path)
            let text = (0..<500).map { index in
              let id = "c\(connection)-\(index)"
              return index % 5 == 0
                ? #"{"type":"net","meta":{"n":\#(index)},"reportId":"\#(id)","payloadBytes":3000}"# + "\n"
                  + String(repeating: "p", count: 3000)
                : #"{"type":"net","meta":{"n":\#(index)},"reportId":"\#(id)"}"# + "\n"
            }.joined()
            async let sent: Void = client.send(text)
            let answers = try await client.lines(500)
            try await sent
            let ids = answers.compactMap { $0["reportId"]?.string }
            return ids == (0..<500).map { "c\(connection)-\($0)" } ? ids.count : 0
          }
        }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      #expect(counts == Array(repeating: 500, count: 8))
      #expect(rig.sink.rowCount == 4000)
      #expect(await rig.server.counters.tally.stored == 4000)
    }
  }

  @Test(
    "a commit takes one large batch while somebody else is connected, else many",
    arguments: [(true, 3500), (true, 150), (false, 3500)])
  func rowsOfCommit(hasNeighbour: Bool, count: Int) async throws {
    try await withIngestRig { rig in
      let first = try IngestClient(rig.path)
      try await first.send(Self.line)
      _ = try await first.lines(1)
      let neighbour = hasNeighbour ? try IngestClient(rig.path) : nil
      if let neighbour {
        try await neighbour.send(Self.line)
        _ = try await neighbour.lines(1)
      }
      rig.sink.hold()
      try await first.send(Self.line)
      #expect(await IngestRig.eventually { rig.sink.isWaitedFor })
      let before = await rig.server.counters.memoryBytes
      try await first.send(String(repeating: Self.line, count: count))
      // Every report takes more than its line.
      let wanted = before + count * Self.line.utf8.count
      #expect(await IngestRig.eventually { await rig.server.counters.memoryBytes >= wanted })
      rig.sink.release()
      _ = try await first.lines(count + 1)
      let most = rig.sink.commits.map { $0.reduce(0) { $0 + $1.rows.count } }.max() ?? 0
      #expect(hasNeighbour ? most <= 256 : most > 1000)
      #expect(rig.sink.hasContention == hasNeighbour)
      withExtendedLifetime(neighbour) {}
    }
  }

  @Test("while one commit runs, what arrives piles up for the next")
  func groups() async throws {
    try await withIngestRig { rig in
      rig.sink.hold()
      let first = try IngestClient(rig.path)
      try await first.send(Self.line)
      #expect(await IngestRig.eventually { rig.sink.isWaitedFor })
      let others = try (0..<10).map { _ in try IngestClient(rig.path) }
      for client in others { try await client.send(Self.line) }
      #expect(await IngestRig.eventually { await rig.server.counters.tally.received == 11 })
      rig.sink.release()
      for client in others { #expect(try await client.lines(1)[0]["status"] == "stored") }
      #expect(rig.sink.commits.map(\.count) == [1, 10])
    }
  }

  @Test("a store that doesn't answer stops the client by its socket, and memory stays bounded")
  func backpressure() async throws {
    // A user's share is 4 MiB, a connection's half of that, each less the room for one more turn.
    let bounded: (inout Snapshot) -> Void = { $0.daemon.ingest.memoryBytes = 16 << 20 }
    try await withIngestRig(bounded) { rig in
      rig.sink.hold()
      let client = try IngestClient(rig.path, isBlocking: false)
      let block = Array(String(repeating: Self.line, count: 1000).utf8)
      var total = 0
      // However slow the machine is, the server reads until it holds what it may hold of one client…
      let isFull = await IngestRig.eventually {
        total += client.sendUntilFull(block, max: 1 << 20)
        return await rig.server.counters.memoryBytes >= (2 << 20) - 2 * PendingBudget.turnBytes
      }
      #expect(isFull)
      // … and then no more, but for what the socket takes.
      for _ in 0..<200 { total += client.sendUntilFull(block, max: 1 << 20) }
      #expect(total < 4 << 20)
      #expect(await rig.server.counters.memoryBytes <= 2 << 20)
      #expect(await rig.server.counters.memoryPauses > 0)
      let other = try IngestClient(rig.path)
      try await other.send(#"{"isGather":"prism"}"# + "\n")
      #expect(try await other.lines(1) == [["isGather": true]], "others are still served")
    }
  }

  @Test("a client that doesn't read its answers is not read from either")
  func unreadAnswers() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path, isBlocking: false)
      let block = Array(String(repeating: #"{"isGather":"prism"}"# + "\n", count: 1000).utf8)
      var (total, pauses) = (0, 0)
      while pauses < 200 && total < 1 << 26 {
        let sent = client.sendUntilFull(block, max: 1 << 26)
        total += sent
        pauses = sent == 0 ? pauses + 1 : 0
        if sent == 0 { try await Task.sleep(for: .milliseconds(1)) }
      }
      #expect(total < 8 << 20)
      #expect(await rig.server.counters.answerPauses == 1)
      #expect(await rig.server.counters.memoryBytes < 1 << 20)
      // It reads nothing for 30 s: it is closed, and nothing of it is left.
      #expect(await IngestRig.eventually { rig.time.sleeperCount == 1 })
      rig.time.advance(by: .seconds(31))
      #expect(await IngestRig.eventually { await rig.server.counters.connections == 0 })
      #expect(await rig.server.counters.closedConnections == [.unread: 1])
      #expect(await rig.server.counters.memoryBytes == 0)
    }
  }

  @Test("a client that reads its answers late gets all of them, in order")
  func lateReader() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      let count = 30_000
      async let sent: Void = client.send(String(repeating: "bad\n", count: count - 1) + Self.line)
      #expect(await IngestRig.eventually { await rig.server.counters.answerPauses == 1 })
      #expect(await rig.server.counters.memoryBytes < 1 << 20)
      let answers = try await client.lines(count)
      try await sent
      #expect(answers.dropLast().allSatisfy { $0["code"] == "bad_request" })
      #expect(answers.last?["status"] == "stored")
    }
  }

  @Test("half a request that stops for 30 s is closed, a quiet connection is not")
  func stalls() async throws {
    try await withIngestRig { rig in
      let (half, quiet) = (try IngestClient(rig.path), try IngestClient(rig.path))
      try await quiet.send(Self.line)
      _ = try await quiet.lines(1)
      try await half.send(#"{"type":"net","#)
      #expect(await IngestRig.eventually { rig.time.sleeperCount == 1 })
      rig.time.advance(by: .seconds(29))
      let before = await rig.server.counters.memoryBytes
      try await half.send(#""meta""#)
      // Not before it was read: it comes in time by the clock of the test.
      #expect(await IngestRig.eventually { await rig.server.counters.memoryBytes == before + 6 })
      #expect(await rig.server.counters.connections == 2)
      rig.time.advance(by: .seconds(1))
      #expect(await IngestRig.eventually { rig.time.sleeperCount == 1 })
      try await quiet.send(Self.line)
      #expect(try await quiet.lines(1)[0]["status"] == "stored")
      rig.time.advance(by: .seconds(30))
      #expect(await IngestRig.eventually { await rig.server.counters.connections == 1 })
      #expect(try await half.rest().isEmpty)
      try await quiet.send(Self.line)
      #expect(try await quiet.lines(1)[0]["status"] == "stored")
    }
  }

  @Test("a payload that is cut short stores nothing, and costs no other client anything")
  func cutPayload() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      try await client.send(Self.line + #"{"type":"net","meta":{"a":1},"payloadBytes":100}"# + "\nabc")
      client.finishSending()
      let answers = try await client.lines(3)
      #expect(answers.map { $0["status"]?.string } == ["stored", "refused"])
      #expect(rig.sink.rowCount == 1)
      #expect(await IngestRig.eventually { await rig.server.counters.connections == 0 })
      #expect(await rig.server.counters.memoryBytes == 0)
    }
  }

  @Test("a client that sends and goes away at once has its reports stored")
  func fireAndForget() async throws {
    try await withIngestRig { rig in
      for _ in 0..<20 {
        let client = try IngestClient(rig.path)
        try await client.send(Self.line)
      }
      #expect(await IngestRig.eventually { rig.sink.rowCount == 20 })
      #expect(await IngestRig.eventually { await rig.server.counters.connections == 0 })
    }
  }

  /// When libdispatch itself watched a connection, it reported such a client's bytes and never its end.
  @Test("clients that don't wait for their answers have all read that they sent, and leave no connection behind")
  func carelessClients() async throws {
    try await withIngestRig { rig in
      let (clients, lines) = (100, 500)
      for _ in 0..<clients {
        try await IngestClient(rig.path).send(String(repeating: Self.line, count: lines))
      }
      #expect(await IngestRig.eventually { await rig.server.counters.connections == 0 })
      #expect(rig.sink.rowCount == clients * lines)
    }
  }

  @Test("connections past the limits are answered busy, in the protocol that they speak")
  func tooMany() async throws {
    let two: (inout Snapshot) -> Void = { $0.daemon.ingest.maxConnectionsPerUser = 2 }
    try await withIngestRig(two) { rig in
      let held = [try IngestClient(rig.path), try IngestClient(rig.path)]
      for client in held {
        try await client.send(#"{"isGather":"prism"}"# + "\n")
        _ = try await client.lines(1)
      }
      let third = try IngestClient(rig.path)
      let answer = try await third.lines(1)[0]
      #expect(answer["code"] == "busy" && answer["retryMs"]?.int == 1000)
      #expect(await rig.server.counters.refusedConnections == [.user: 1])
      rig.reload { $0.daemon.ingest.maxConnectionsPerUser = 3 }
      let fourth = try IngestClient(rig.path)
      try await fourth.send(Self.line)
      #expect(try await fourth.lines(1)[0]["status"] == "stored")
    }
  }

  @Test("a reload counts for connections that are open")
  func reloads() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      try await client.send(Self.line)
      #expect(try await client.lines(1)[0]["status"] == "stored")
      rig.reload { $0.namespaces[.prism]?.isGather = false }
      try await client.send(Self.line)
      #expect(try await client.lines(1)[0]["code"] == "gather_off")
    }
  }

  @Test("a quiet connection that watches a namespace gets the state after a reload, and stays open")
  func watches() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      try await client.send(#"{"watch":{"configuration":true}}"# + "\n")
      #expect(try await client.lines(1)[0]["watch"]?["isGather"] == true)
      for isGather in [false, true] {
        rig.reload { $0.namespaces[.prism]?.isGather = isGather }
        await rig.server.configurationChanged()
        #expect(try await client.lines(1)[0]["changed"]?["isGather"] == .bool(isGather))
      }
      try await client.send(Self.line)
      #expect(try await client.lines(1)[0]["status"] == "stored")
    }
  }

  @Test("stopping commits and answers what was taken, and refuses what comes after")
  func stops() async throws {
    try await withIngestRig { rig in
      rig.sink.hold()
      let client = try IngestClient(rig.path)
      try await client.send(Self.line)
      #expect(await IngestRig.eventually { rig.sink.isWaitedFor })
      let stopping = Task { await rig.server.stop() }
      #expect(await IngestRig.eventually { (try? IngestClient(rig.path)) == nil })
      try await client.send(Self.line)
      #expect(await IngestRig.eventually { await rig.server.counters.tally.refused[.busy] == 1 })
      rig.sink.release()
      await stopping.value
      let answers = try await client.lines(3)
      #expect(answers.map { $0["status"]?.string } == ["stored", "refused"])
      #expect(answers[1]["code"] == "busy")
      #expect(access(rig.path, F_OK) != 0, "the socket's file is gone")
    }
  }

  @Test("a failed commit is answered with its code, and the next report is taken")
  func failedCommit() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      rig.sink.fail(Refusal(.unknown, "a sync failed", retryMilliseconds: 500))
      try await client.send(Self.line)
      #expect(try await client.lines(1)[0]["code"] == "unknown")
      rig.sink.fail(nil)
      try await client.send(Self.line)
      #expect(try await client.lines(1)[0]["status"] == "stored")
    }
  }

  @Test("descriptors that are sent along never become the daemon's")
  func sentDescriptors() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      let pipe = try FileDescriptors.pipe()
      defer { close(pipe.reading) }
      for _ in 0..<20 { try FileDescriptors.send(pipe.writing, with: Self.line, over: client.descriptor) }
      #expect(try await client.lines(20).allSatisfy { $0["status"] == "stored" })
      close(pipe.writing)
      var byte: UInt8 = 0
      #expect(read(pipe.reading, &byte, 1) == 0, "no other process has the writing end: this is the end")
    }
  }

  @Test("a socket that somebody listens on is not taken away")
  func inUse() async throws {
    try await withIngestRig { rig in
      #expect(throws: SocketError.inUse(path: rig.path)) { try UnixListener(path: rig.path, mode: 0o666) }
    }
  }
}

/// A control message, which Swift needs C for.
enum FileDescriptors {
  /// Reading never blocks.
  static func pipe() throws -> (reading: Int32, writing: Int32) {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { throw IngestClient.Failure(code: errno) }
    // A program that another test starts meanwhile must not hold the writing end.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    return (ends[0], ends[1])
  }

  private static let scmRights: Int32 = 1

  /// cmsg(3), laid out by hand: length, level, type, the descriptor.
  static func send(_ descriptor: Int32, with text: String, over socket: Int32) throws {
    var bytes = Array(text.utf8)
    var control = [UInt64](repeating: 0, count: 3)
    let sent = bytes.withUnsafeMutableBytes { data in
      control.withUnsafeMutableBytes { control in
        control.storeBytes(of: 20, as: Int.self)
        control.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
        control.storeBytes(of: scmRights, toByteOffset: 12, as: Int32.self)
        control.storeBytes(of: descriptor, toByteOffset: 16, as: Int32.self)
        var piece = iovec(iov_base: data.baseAddress, iov_len: data.count)
        return withUnsafeMutablePointer(to: &piece) { piece in
          var message = msghdr()
          (message.msg_iov, message.msg_iovlen) = (piece, 1)
          (message.msg_control, message.msg_controllen) = (control.baseAddress, 24)
          return sendmsg(socket, &message, 0)
        }
      }
    }
    guard sent == text.utf8.count else { throw IngestClient.Failure(code: errno) }
  }
}
