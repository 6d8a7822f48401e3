import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismInputs

/// Messages of syslog as programs send them (docs/statsd-syslog.md). The examples are those of RFC 5424 (section 6.5), of RFC
/// 3164 (section 5.4), and of rsyslog, util-linux and Python.
@Suite struct SyslogTests {
  struct Good: Sendable, CustomTestStringConvertible {
    let text: String, meta: String
    var time: Int64?
    var testDescription: String { text }
    init(_ text: String, _ meta: String, _ time: Int64? = nil) {
      (self.text, self.meta, self.time) = (text, meta, time)
    }
  }

  private static let version1: [Good] = [
    .init(
      "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{FEFF}'su root' failed for lonvick on /dev/pts/8",
      #"{"severity":"crit","facility":"auth","host":"mymachine.example.com","app":"su","messageId":"ID47","message":"'su root' failed for lonvick on /dev/pts/8","time":"2003-10-11T22:14:15.003Z"}"#,
      1_065_910_455_003),
    .init(
      "<165>1 2003-08-24T05:14:15.000003-07:00 192.0.2.1 myproc 8710 - - %% It's time to make the do-nuts.",
      #"{"severity":"notice","facility":"local4","host":"192.0.2.1","app":"myproc","pid":"8710","message":"%% It's time to make the do-nuts.","time":"2003-08-24T05:14:15.000003-07:00"}"#,
      1_061_727_255_000),
    .init(
      #"<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3" eventSource="Application" eventID="1011"] An application event log entry..."#,
      #"{"severity":"notice","facility":"local4","host":"mymachine.example.com","app":"evntslog","messageId":"ID47","data":{"exampleSDID@32473":{"iut":"3","eventSource":"Application","eventID":"1011"}},"message":"An application event log entry...","time":"2003-10-11T22:14:15.003Z"}"#,
      1_065_910_455_003),
    .init(
      #"<165>1 2003-10-11T22:14:15.003Z mymachine.example.com evntslog - ID47 [exampleSDID@32473 iut="3"][examplePriority@32473 class="high"]"#,
      #"{"severity":"notice","facility":"local4","host":"mymachine.example.com","app":"evntslog","messageId":"ID47","data":{"exampleSDID@32473":{"iut":"3"},"examplePriority@32473":{"class":"high"}},"message":"","time":"2003-10-11T22:14:15.003Z"}"#,
      1_065_910_455_003),
    .init("<0>1 - - - - - -", #"{"severity":"emerg","facility":"kern","message":""}"#),
    .init(
      #"<13>1 - h a p m [x a="q\"b\\c\]d\e" a="2" b=""] two\#nlines"#,
      #"{"severity":"notice","facility":"user","host":"h","app":"a","pid":"p","messageId":"m","data":{"x":{"a":["q\"b\\c]d\\e","2"],"b":""}},"message":"two\nlines"}"#
    ),
    .init(
      #"<13>1 - h a p m [x a="1"][y b="2"][x a="3" c="4"] text"#,
      #"{"severity":"notice","facility":"user","host":"h","app":"a","pid":"p","messageId":"m","data":{"x":{"a":["1","3"],"c":"4"},"y":{"b":"2"}},"message":"text"}"#
    ),
    // logger of util-linux
    .init(
      #"<13>1 2026-11-28T01:37:24.123456+00:00 vm root 42 - [timeQuality tzKnown="1" isSynced="0"] hi"#,
      #"{"severity":"notice","facility":"user","host":"vm","app":"root","pid":"42","data":{"timeQuality":{"tzKnown":"1","isSynced":"0"}},"message":"hi","time":"2026-11-28T01:37:24.123456+00:00"}"#,
      1_795_829_844_123),
  ]

  private static let old: [Good] = [
    .init(
      "<34>Oct 11 22:14:15 mymachine su: 'su root' failed for lonvick on /dev/pts/8",
      #"{"severity":"crit","facility":"auth","host":"mymachine","app":"su","message":"'su root' failed for lonvick on /dev/pts/8","time":"Oct 11 22:14:15"}"#
    ),
    .init("Use the BFG!", #"{"severity":"notice","facility":"user","message":"Use the BFG!"}"#),
    .init(
      "<13>Feb  5 17:32:18 10.0.0.99 Use the BFG!",
      #"{"severity":"notice","facility":"user","host":"10.0.0.99","message":"Use the BFG!","time":"Feb  5 17:32:18"}"#),
    .init(
      "<165>Aug 24 05:34:00 CST 1987 mymachine myproc[10]: %% It's time to make the do-nuts.",
      #"{"severity":"notice","facility":"local4","message":"CST 1987 mymachine myproc[10]: %% It's time to make the do-nuts.","time":"Aug 24 05:34:00"}"#
    ),
    .init(
      "<0>1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!",
      #"{"severity":"emerg","facility":"kern","message":"1990 Oct 22 10:52:01 TZ-6 scapegoat.dmz.example.org 10.1.2.3 sched[0]: That's All Folks!"}"#
    ),
    // syslog(3), which names no host
    .init(
      "<14>Nov 28 01:37:24 till[812]: paid",  // no LF at its end
      #"{"severity":"info","facility":"user","app":"till","pid":"812","message":"paid","time":"Nov 28 01:37:24"}"#),
    // rsyslog's RSYSLOG_ForwardFormat
    .init(
      "<30>2026-11-28T01:37:24.5+01:00 vm systemd[1]: Started a unit.",
      #"{"severity":"info","facility":"daemon","host":"vm","app":"systemd","pid":"1","message":"Started a unit.","time":"2026-11-28T01:37:24.5+01:00"}"#,
      1_795_826_244_500),
    // Python's SysLogHandler, with a byte 0 at its end
    .init("<11>till: failed\u{0}", #"{"severity":"err","facility":"user","app":"till","message":"failed"}"#),
    .init("<15>no header at all\u{0}", #"{"severity":"debug","facility":"user","message":"no header at all"}"#),
    .init("<11>Traceback:\n  File\n", #"{"severity":"err","facility":"user","message":"Traceback:\n  File"}"#),
  ]

  @Test("messages of programs are read", arguments: version1 + old) func reads(one: Good) throws {
    let message = SyslogMessage(Array(one.text.utf8))
    let meta = String(decoding: [0x7B] + message.members + [0x7D], as: UTF8.self)
    #expect(meta == one.meta)
    #expect(message.createdTime == one.time)
  }

  private static let heads = [
    "", "<", "<>", "<1", "<192>", "<999>", "<1234>", "<-1>", "<x>", "< 1>", "<13", "<13>", "<013>", "<13>1", "<13>1 ",
    "<13>2 - - - - - - a", "<13>11 - - - - - - a", "<13>1 -", "<13>1 - -", "<13>1 - - - -", "<13>1 - - - - -",
    "<13>1 - - - - - ", "<13>1  - - - - - -", "<13>1 - - - - - x", "<13>1 - - - - - -x",
  ]
  private static let data = [
    "[", "[]", "[ ]", "[x", "[x ", "[x a", "[x a=", "[x a=\"", "[x a=\"b", "[x a=\"b\"", "[x a=b]", "[x =\"b\"]",
    "[x a=\"b\"c]",
    "[x a=\"b\\\"]", "[x  a=\"b\"]", "[x]y", "[x] [y", "[x][", "[x][]", "[x a=\"b]", "]", "[[x]]",
  ]
  private static let times = [
    "2003", "2003-10-11", "2003-10-11T22:14:15", "2003-10-11 22:14:15Z", "2003-13-11T22:14:15Z", "2003-00-11T22:14:15Z",
    "2003-10-32T22:14:15Z", "2003-10-11T24:14:15Z", "2003-10-11T22:60:15Z", "2003-10-11T22:14:61Z",
    "2003-10-11T22:14:15.Z",
    "2003-10-11T22:14:15z", "2003-10-11T22:14:15+0100", "2003-10-11T22:14:15+24:00", "2003-10-11T22:14:15+01:60",
    "2003-10-11T22:14:15.003", "x003-10-11T22:14:15Z", "Oct", "Oct 11", "now", "0", "1065910455",
  ]
  private static let stamps = [
    "Oct 11 22:14", "Oct 11 22:14:15", "oct 11 22:14:15 a", "Okt 11 22:14:15 a", "Oct 1 22:14:15 a",
    "Oct x1 22:14:15 a",
    "Oct 11 2x:14:15 a", "Oct 11 22-14-15 a", "Oct-11 22:14:15 a", "Oct 11  2:14:15 a",
  ]
  private static let tags = [
    ":", ": a", "[1]: a", "a[: b", "a[]: b", "a[1: b", "a[1]b", "a[1]:b", "a:b", "http://x", "a b: c",
    "\(String(repeating: "t", count: 200)): a",
    "a[\(String(repeating: "1", count: 70))]: b",
  ]
  private static let notWhole =
    heads + data.map { "<13>1 - h a p m \($0) text" } + times.map { "<13>1 \($0) h a p m - text" }
    + stamps.map { "<13>\($0)" } + tags.map { "<13>\($0)" } + ["\u{0}", "\n", "\r\n\u{0}", "<13>\u{0}\u{1}"]

  @Test("nothing is lost of a message that has another form, or the form only in part", arguments: notWhole) func kept(
    text: String
  )
    throws
  {
    let meta = try JSONValue(parsing: [0x7B] + SyslogMessage(Array(text.utf8)).members + [0x7D])
    func letters(_ text: String) -> [Character] { text.filter { $0.isLetter || $0.isNumber }.sorted() }
    let parts = ["host", "app", "pid", "messageId", "message", "time"].compactMap { meta[$0]?.string }
    let found = letters(parts.joined() + (meta["data"]?.text ?? ""))
    let priority = text.prefixMatch(of: /<(\d{1,3})>/).flatMap { Int($0.1)! <= 191 ? $0.0 : nil } ?? ""
    let rest = text.dropFirst(priority.count)
    let isVersion1 = meta["data"] != nil || rest.hasPrefix("1 - ") && letters(String(rest)) != found
    #expect(found == letters(String(isVersion1 ? rest.dropFirst() : rest)), "\(meta.text)")
  }

  private static let raw: [[UInt8]] = [
    [0xFF], [0xFE, 0xFF], Array("<13>".utf8) + [0xC3, 0x28], Array("<13>a".utf8) + [0xE2, 0x82], [0xED, 0xA0, 0x80],
    Array("<13>1 - ".utf8) + [0xFF] + Array(" - - - - x".utf8),
    Array(#"<13>1 - - - - - [x a=""#.utf8) + [0xFF] + Array(#""] x"#.utf8),
    Array("<13>app[1".utf8) + [0xFF] + Array("]: x".utf8), Array("<13>1 - - - - m".utf8) + [0xFF] + Array(" - x".utf8),
  ]

  @Test("bytes that are no UTF-8 are replaced, and the report says so", arguments: raw) func replaced(bytes: [UInt8])
    throws
  {
    let meta = try JSONValue(parsing: [0x7B] + SyslogMessage(bytes).members + [0x7D])
    #expect(meta["MENDED"] == "utf8" && meta.text.contains("\u{FFFD}"))
    let cut = try JSONValue(parsing: [0x7B] + SyslogMessage(bytes, isCut: true).members + [0x7D])
    #expect(cut["MENDED"] == "utf8, cut")
  }

  // MARK: Streams

  private static func messages(_ input: [UInt8], piece: Int) -> [String] {
    var (stream, rest, found): (SyslogStream, ArraySlice<UInt8>, [String]) = (SyslogStream(), input[...], [])
    func take() {
      guard let whole = stream.takeMessage() else { return }
      found += SyslogStream.messages(of: whole).map {
        String(decoding: $0.bytes, as: UTF8.self) + ($0.isCut ? "…" : "")
      }
    }
    while !rest.isEmpty {
      let part = Array(rest.prefix(piece))
      rest = rest.dropFirst(stream.consume(part.span, from: 0))
      take()
    }
    stream.end()
    take()
    return found
  }

  private static let framed: [(String, [String])] = [
    ("<13>a\n<13>b\n", ["<13>a", "<13>b"]), ("<13>a\n<13>b", ["<13>a", "<13>b"]),
    ("5 <13>a6 <13>\nb", ["<13>a", "<13>\nb"]),
    ("5 <13>a\n<13>b\n5 <13>c\n", ["<13>a", "<13>b", "<13>c"]), ("5 <13>a\n\n\u{0}\r\n5 <13>b", ["<13>a", "<13>b"]),
    ("2024 was fine\n<13>b\n", ["2024 was fine", "<13>b"]), ("12\n5 <13>a", ["12", "<13>a"]),
    ("12345678 <13>a\n", ["12345678 <13>a"]),
    // The log of a proxy has the request in its text; a web page begins with it.
    ("<134>\"GET / HTTP/1.1\"\n<13>b\n", ["<134>\"GET / HTTP/1.1\"", "<13>b"]),
    ("21 <134>x GET / HTTP/1.15 <13>b", ["<134>x GET / HTTP/1.1", "<13>b"]),
    ("10.0.0.1 GET / HTTP/1.1\n", ["10.0.0.1 GET / HTTP/1.1"]), ("GET / HTTP/1.1\r\n<13>b\n", []),
    ("9 <13>a", ["<13>a…"]), ("\n\n\n", []), ("1 <2 <a\n", ["1 <2 <a"]), ("7", ["7"]), ("7 ", ["7 "]), ("", []),
  ]

  @Test("messages of a connection end by their length or by a line feed, however they come", arguments: framed)
  func frames(input: String, expected: [String]) {
    for piece in [1, 2, 3, 7, 1000] {
      #expect(Self.messages(Array(input.utf8), piece: piece) == expected, "pieces of \(piece)")
    }
  }

  @Test("a long message is cut and says so, in both forms, and the next one is whole") func long() {
    let text = "<13>" + String(repeating: "x", count: 100_000)
    for input in ["\(text)\n<13>b\n", "\(text.utf8.count) \(text)5 <13>b"] {
      let found = Self.messages(Array(input.utf8), piece: 4096)
      #expect(found.map(\.utf8.count) == [65_536 + 3, 5] && found[1] == "<13>b")
    }
  }
}
