import Glibc
import PrismPacket
import PrismProtocol
import PrismStore

// S6: how fast rows become the bytes of a packet, against libdeflate's level 6 and AES-128-GCM alone on the same bytes.
// Prints one line of JSON: the ratios of processor time, alone / prism, for both compressions; and of time on the clock
// where the next packet's rows are read while a packet is packed, as in the daemon.
//
// packet-bench FILE [gzip]: rows against columns, for the metas of a file.

private let rowsPerPacket = 10_000
private let rounds = 20

func cpuSeconds() -> Double { seconds(CLOCK_PROCESS_CPUTIME_ID) }
private func wallSeconds() -> Double { seconds(CLOCK_MONOTONIC) }

private func seconds(_ clock: clockid_t) -> Double {
  var time = timespec()
  clock_gettime(clock, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

private func meta(_ number: Int) -> String {
  let chance = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
  return #""seq":\#(number),"uid":"\#(String(chance, radix: 16))","page":"/home/feed","ms":\#(chance % 8000),"#
    + #""mem":\#(chance >> 8 & 255),"fps":\#(30 + chance % 31),"code":200,"ok":true,"#
    + #""rid":"\#(String(chance &* 3, radix: 16))","msg":"cache miss, fetched from origin","dev":{"model":"kiosk-7"}"#
}

private let namespace = NamespaceName("bench")!
private let context = CommonContext(
  members: Array(
    (#""APP_NAME":"bench","APP_PACKAGE_NAME":"/usr/bin/bench","APP_PLATFORM":"linux","SYS_PEER_PID":"12345","#
      + #""SYS_DEVICE_ID":"0f0e0d0c0b0a09080706050403020100","SYS_SYSTEM_VERSION":"Debian GNU/Linux 12 (bookworm)""#)
      .utf8))

private func fill(_ store: ReportStore) async {
  for start in stride(from: 0, to: rowsPerPacket, by: 500) {
    var batch = ReportBatch(
      namespace: namespace, userID: 1000, context: context, quota: StoreQuota(bytesMax: .max, evictsOldest: false))
    batch.types = [.init(type: ReportType("event")!, priority: .rest, isRealtime: false)]
    for number in start..<start + 500 {
      let begin = batch.arena.count
      batch.arena.append(contentsOf: meta(number).utf8)
      batch.rows.append(.init(type: 0, createdTime: 1, body: begin..<batch.arena.count, metaBytes: 700))
    }
    guard case .committed = await store.append([batch]) else { fatalError("the store took no rows") }
  }
}

private func packetID(_ number: Int) -> PacketID { PacketID(high: 0x7000, low: UInt64(number + 1)) }

private func claim(_ round: Int) -> Claim {
  Claim(
    namespace: namespace, kind: .meta, types: .all, itemsMax: rowsPerPacket, bytesMax: .max, metaBytesMax: .max,
    packetID: packetID(round), unixMilliseconds: 1)
}

/// From the rows in the database to a packet's body; the rows wait again afterwards.
private func prism(_ store: ReportStore, _ writer: PacketWriter) async throws -> (seconds: Double, metas: [UInt8]) {
  var (seconds, metas) = (0.0, [UInt8]())
  for round in 0..<rounds {
    let began = cpuSeconds()
    guard let packet = try await store.turn(UploadCommit(claims: [claim(round)])).first ?? nil else {
      fatalError("no rows")
    }
    _ = try writer.write(headers(of: packet.id), metas: packet.metas, payloads: [])
    seconds += cpuSeconds() - began
    metas = packet.metas
    _ = try await store.turn(UploadCommit(dispositions: [.released(packet.id)]))
  }
  return (seconds, metas)
}

private func claimed(_ store: ReportStore, _ round: Int) async throws -> ClaimedPacket {
  let turn = UploadCommit(dispositions: round > 0 ? [.released(packetID(round - 1))] : [], claims: [claim(round)])
  guard let packet = try await store.turn(turn).first ?? nil else { fatalError("no rows") }
  return packet
}

/// As above, on the clock: rows are read while the packet before is packed.
private func pipelined(_ store: ReportStore, _ writer: PacketWriter) async throws -> Double {
  let began = wallSeconds()
  var packet = try await claimed(store, 0)
  for round in 1...rounds {
    async let next = claimed(store, round)
    _ = try writer.write(headers(of: packet.id), metas: packet.metas, payloads: [])
    packet = try await next
  }
  let passed = wallSeconds() - began
  _ = try await store.turn(UploadCommit(dispositions: [.released(packet.id)]))
  return passed
}

func headers(_ rows: Int) -> PacketHeaders {
  var headers = headers(of: packetID(0))
  headers.itemCount = rows
  return headers
}

private func headers(of id: PacketID) -> PacketHeaders {
  PacketHeaders(
    deviceID: "bench", namespace: namespace, packetID: id, kind: .meta, itemCount: rowsPerPacket, sentTime: 0,
    format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .gzip))
}

/// Gzip and GCM of bytes that are there already: what an encoder can't do without.
private func alone(_ metas: [UInt8], _ writer: PacketWriter) throws -> (cpu: Double, wall: Double) {
  let (cpu, wall) = (cpuSeconds(), wallSeconds())
  for round in 0..<rounds { _ = try writer.write(headers(of: packetID(round)), metas: metas, payloads: []) }
  return (cpuSeconds() - cpu, wallSeconds() - wall)
}

private func run() async throws {
  var template = Array("/tmp/prism-packet-XXXXXX".utf8CString)
  let folder = String(cString: mkdtemp(&template))
  let store = try await ReportStore.open(StoreOptions(folder: folder))
  await fill(store)
  let key = Secret([UInt8](repeating: 7, count: 16))
  let small = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: key, compression: .small)
  let fast = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: key, compression: .fast)
  _ = try await prism(store, small)  // warm
  let (smallSeconds, metas) = try await prism(store, small)
  let (fastSeconds, _) = try await prism(store, fast)
  let pipelinedSeconds = try await pipelined(store, small)
  let level6 = try alone(metas, small)
  print(
    #"{"smallOfLevel6Alone":\#(level6.cpu / smallSeconds),"fastOfLevel6Alone":\#(level6.cpu / fastSeconds),"#
      + #""pipelinedOfLevel6Alone":\#(level6.wall / pipelinedSeconds)}"#)
  await store.close()
  for name in ["prism.db", "prism.db-wal", "prism.db-shm", "prism.lock", "ballast"] { unlink(folder + "/" + name) }
  rmdir(folder)
}

if CommandLine.arguments.count > 1 {
  let isGzip = CommandLine.arguments.contains("gzip")
  try Columns.run(CommandLine.arguments[1], encoding: isGzip ? .gzip : .zstd, compression: .fast)
} else {
  try await run()
}
