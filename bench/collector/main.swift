import Dispatch
import Glibc
import PrismBase
import PrismPacket
import PrismProtocol
import Synchronization

// S8: loads a collector with packets that were made beforehand, and prints one line of JSON: how long it took.
// collector-bench PORT KEY-FILE SENDERS ROWS PACKETS WINDOW EVENTS-PER-SECOND [FORM]
// Each sender has WINDOW connections, one packet on each, and each packet names the one before it. All together offer as many
// events a second; 0: as many as the collector takes. FORM: columns, as a daemon sends them, or rows.

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

/// Half of a row of 800 bytes; the other half is `common`.
private func meta(_ number: Int) -> String {
  let chance = UInt64(number) &* 0x9E37_79B9_7F4A_7C15
  return #"{"MONITOR_TYPE":"apm.page","REPORT_ID":"\#(String(chance &* 5, radix: 16))-\#(number)","#
    + #""CREATE_TIME":1700000000000,"seq":\#(number),"uid":"\#(String(chance, radix: 16))","page":"/home/feed","#
    + #""ms":\#(chance % 8000),"mem":\#(chance >> 8 & 255),"fps":\#(30 + chance % 31),"code":200,"ok":true,"#
    + #""net":"lte","cpu":\#(chance % 997),"rid":"\#(String(chance &* 3, radix: 16))","#
    + #""msg":"cache miss, fetched from origin","dev":{"model":"kiosk-7"},"SESSION":"\#(number / 500)"}"#
}

private let common =
  #"{"$common":{"APP_NAME":"bench","APP_PACKAGE_NAME":"/usr/bin/bench","APP_PLATFORM":"linux","APP_VERSION":"5.12.3","#
  + #""SYS_PEER_PID":"12345","SYS_DEVICE_ID":"0f0e0d0c0b0a09080706050403020100","SYS_ARCHITECTURE":"x86_64","#
  + #""SYS_SYSTEM_VERSION":"Debian GNU/Linux 12 (bookworm)","SYS_KERNEL":"6.1.0-18-amd64","SYS_LANGUAGE":"en_US.UTF-8","#
  + #""SYS_TIMEZONE":"Europe/Berlin","MONITOR_NAMESPACE":"bench"}}"#

private struct Sender: Sendable {
  let requests: [[UInt8]]

  init(_ number: Int, key: Secret, rows: Int, packets: Int, _ form: PacketForm) throws {
    let writer = try PacketWriter(cipher: .aes128GCM, keyID: "main", key: key, encoding: .zstd, form: form)
    var random = SystemRandomNumberGenerator()
    var (requests, last) = ([[UInt8]](), PacketID?.none)
    // A collector forgets packets of a month ago, and then does not wait for the one before.
    let begin = Int64(time(nil)) * 1000
    for packet in 0..<packets {
      let headers = PacketHeaders(
        deviceID: "bench-\(number)", namespace: NamespaceName("bench")!,
        packetID: PacketID(unixMilliseconds: begin + Int64(packet), using: &random), kind: .meta,
        dependsOn: last, itemCount: rows, sentTime: begin + Int64(packet),
        format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .zstd))
      let metas = (0..<rows).map { meta((number * packets + packet) * rows + $0) }.joined(separator: "\n")
      let written = try writer.write(headers, metas: Array((common + "\n" + metas).utf8), payloads: [])
      let body = written.body
      let fields = written.headers.fields.map { "\($0.name): \($0.value)\r\n" }.joined()
      let head =
        "POST /prism/meta HTTP/1.1\r\nHost: 127.0.0.1\r\n\(fields)Content-Length: \(body.count)\r\n\r\n"
      requests.append(Array(head.utf8) + body)
      last = headers.packetID
    }
    self.requests = requests
  }

  /// Sends all packets. Blocks. - Parameter pause: seconds from one packet to the next, unless the collector is slower.
  func run(port: UInt16, window: Int, pause: Double) {
    let began = wallSeconds()
    let connections = (0..<window).map { _ in connect(port) }
    for index in requests.indices {
      let connection = connections[index % window]
      if index >= window { readAnswer(connection) }
      let early = began + Double(index) * pause - wallSeconds()
      if early > 0 { usleep(UInt32(early * 1e6)) }
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
private let form = words.count > 7 ? PacketForm(rawValue: words[7]) : .columns
guard (7...8).contains(words.count), numbers.count == 6, let form else {
  stop("usage: PORT KEY-FILE SENDERS ROWS PACKETS WINDOW EVENTS-PER-SECOND [FORM]")
}
private let (port, senderCount, rows, packets, window) = (numbers[0], numbers[1], numbers[2], numbers[3], numbers[4])
private let pause = numbers[5] == 0 ? 0 : Double(rows * senderCount) / Double(numbers[5])
private let file = fopen(words[1], "r")
private var line = [CChar](repeating: 0, count: 128)
guard let file, fgets(&line, 128, file) != nil,
  let key = Hex.decode(line.prefix { $0 > 0x20 }.map { UInt8(bitPattern: $0) })
else { stop("the key file holds no key") }

private let senders = try (0..<senderCount).map { try Sender($0, key: Secret(key), rows: rows, packets: packets, form) }
private let began = wallSeconds()
if pause > 0 {
  // Each has a thread: they sleep, and there may be more of them than cores.
  let all = DispatchGroup()
  for sender in senders {
    DispatchQueue(label: "sender").async(group: all) { sender.run(port: UInt16(port), window: window, pause: pause) }
  }
  all.wait()
} else {
  DispatchQueue.concurrentPerform(iterations: senders.count) {
    senders[$0].run(port: UInt16(port), window: window, pause: 0)
  }
}
private let seconds = wallSeconds() - began
print(#"{"events":\#(senderCount * rows * packets),"seconds":\#(seconds)}"#)
