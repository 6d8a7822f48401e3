import Dispatch
import Glibc
import PrismPacket
import PrismProtocol
import Synchronization

// S8: loads a collector with packets that were made beforehand, and prints one line of JSON: how long it took.
// collector-bench PORT KEY-FILE SENDERS ROWS PACKETS WINDOW
// Each sender has WINDOW connections, one packet on each, and each packet names the one before it.

private func stop(_ why: String) -> Never {
  let line = "collector-bench: \(why)\n"
  write(STDERR_FILENO, line, line.utf8.count)
  exit(1)
}

private func wallSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_MONOTONIC, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// A row of 800 bytes, of which half is common information, as the daemon sends it.
private func meta(_ number: Int) -> String {
  let chance = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
  return #"{"seq":\#(number),"uid":"\#(String(chance, radix: 16))","page":"/home/feed","ms":\#(chance % 8000),"#
    + #""mem":\#(chance >> 8 & 255),"fps":\#(30 + chance % 31),"code":200,"ok":true,"net":"lte","cpu":\#(chance % 997),"#
    + #""rid":"\#(String(chance &* 3, radix: 16))","msg":"cache miss, fetched from origin","dev":{"model":"kiosk-7"},"#
    + #""APP_NAME":"bench","APP_PACKAGE_NAME":"/usr/bin/bench","APP_PLATFORM":"linux","APP_VERSION":"5.12.3","#
    + #""SYS_PEER_PID":"12345","SYS_DEVICE_ID":"0f0e0d0c0b0a09080706050403020100","SYS_ARCHITECTURE":"x86_64","#
    + #""SYS_SYSTEM_VERSION":"Debian GNU/Linux 12 (bookworm)","SYS_KERNEL":"6.1.0-18-amd64","SYS_LANGUAGE":"en_US.UTF-8","#
    + #""SYS_TIMEZONE":"Europe/Berlin","CREATE_TIME":1700000000000,"MONITOR_TYPE":"apm.page","#
    + #""REPORT_ID":"\#(String(chance &* 5, radix: 16))-\#(number)","MONITOR_NAMESPACE":"bench","SESSION":"\#(number / 500)"}"#
}

private struct Sender: Sendable {
  let requests: [[UInt8]]

  init(_ number: Int, key: Secret, rows: Int, packets: Int) throws {
    let encoder = try PacketEncoder(cipher: .aes128GCM, key: key, compression: .fast)
    var random = SystemRandomNumberGenerator()
    var (requests, last) = ([[UInt8]](), PacketID?.none)
    for packet in 0..<packets {
      let context = PacketContext(
        deviceID: "bench-\(number)", namespace: NamespaceName("bench")!,
        packetID: PacketID(unixMilliseconds: 1_700_000_000_000 + Int64(packet), using: &random), kind: .meta)
      let metas = (0..<rows).map { meta((number * packets + packet) * rows + $0) }.joined(separator: "\n")
      let body = try encoder.encode(context: context, metas: Array(metas.utf8), payloads: []).body
      let head = """
        POST /prism/meta HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/vnd.prism.meta\r
        Prism-Version: 1\r\nPrism-Namespace: bench\r\nPrism-Device-Id: bench-\(number)\r
        Prism-Packet-Id: \(context.packetID)\r\nPrism-Item-Count: \(rows)\r\nPrism-Cipher: aes-128-gcm\r
        Prism-Key-Id: main\r\n\(last.map { "Prism-Depends-On: \($0)\r\n" } ?? "")Content-Length: \(body.count)\r\n\r\n
        """
      requests.append(Array(head.utf8) + body)
      last = context.packetID
    }
    self.requests = requests
  }

  /// Sends all packets. Blocks.
  func run(port: UInt16, window: Int) {
    let connections = (0..<window).map { _ in connect(port) }
    for index in requests.indices {
      let connection = connections[index % window]
      if index >= window { readAnswer(connection) }
      write(requests[index], to: connection)
    }
    for index in max(0, requests.count - window)..<requests.count { readAnswer(connections[index % window]) }
    for connection in connections { close(connection) }
  }

  private func connect(_ port: UInt16) -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var on: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    (address.sin_family, address.sin_port) = (sa_family_t(AF_INET), port.bigEndian)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    if result != 0 { stop("no collector at port \(port)") }
    return descriptor
  }

  private func write(_ bytes: [UInt8], to connection: Int32) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { Glibc.write(connection, $0.baseAddress! + sent, bytes.count - sent) }
      if count <= 0 { stop("the collector closed the connection") }
      sent += count
    }
  }

  /// The answers are small: each comes in one piece.
  private func readAnswer(_ connection: Int32) {
    var answer = [UInt8](repeating: 0, count: 4096)
    let count = read(connection, &answer, answer.count)
    let text = String(decoding: answer.prefix(max(0, count)), as: UTF8.self)
    if !text.hasPrefix("HTTP/1.1 200") || !text.contains("Prism-Receipt") { stop("the collector answers \(text)") }
  }
}

private let words = Array(CommandLine.arguments.dropFirst())
private let numbers = words.enumerated().filter { $0.offset != 1 }.compactMap { Int($0.element) }
guard words.count == 6, numbers.count == 5 else { stop("usage: PORT KEY-FILE SENDERS ROWS PACKETS WINDOW") }
private let (port, senderCount, rows, packets, window) = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
private let file = fopen(words[1], "r")
private var line = [CChar](repeating: 0, count: 128)
guard let file, fgets(&line, 128, file) != nil,
  let key = Hex.decode(line.prefix { $0 > 0x20 }.map { UInt8(bitPattern: $0) })
else { stop("the key file holds no key") }

private let senders = try (0..<senderCount).map { try Sender($0, key: Secret(key), rows: rows, packets: packets) }
private let began = wallSeconds()
DispatchQueue.concurrentPerform(iterations: senders.count) { senders[$0].run(port: UInt16(port), window: window) }
private let seconds = wallSeconds() - began
print(#"{"events":\#(senderCount * rows * packets),"seconds":\#(seconds)}"#)
