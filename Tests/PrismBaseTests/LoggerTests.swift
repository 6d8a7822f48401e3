import Glibc
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismBase

@Suite struct LoggerTests {
  /// The lines that were logged, and whether more are taken.
  private final class Book: Sendable {
    private let state = Mutex((lines: [String](), isOpen: true))
    var lines: [String] { state.withLock { $0.lines } }
    func set(isOpen: Bool) { state.withLock { $0.isOpen = isOpen } }
    var offer: @Sendable (String) -> Bool {
      { line in
        self.state.withLock {
          if $0.isOpen { $0.lines.append(line) }
          return $0.isOpen
        }
      }
    }
  }

  private func logged(
    format: Logger.Format = .text, toJournal: Bool = false, _ body: (Logger) -> Void
  ) -> [String] {
    let book = Book()
    body(
      Logger(
        level: .debug, format: format, toJournal: toJournal, time: ManualTime(unixMilliseconds: 1_795_267_230_007),
        offer: book.offer))
    return book.lines
  }

  @Test(
    "a line begins with its time, or with the priority that a journal wants in its place",
    arguments: [
      (Logger.Format.text, false, "2026-11-21T13:20:30.007Z warning it rains place=Ulm\n"),
      (.text, true, "<4>warning it rains place=Ulm\n"),
      (
        .json, false,
        #"{"time":"2026-11-21T13:20:30.007Z","level":"warning","message":"it rains","place":"Ulm"}"# + "\n"
      ),
      (.json, true, #"<4>{"level":"warning","message":"it rains","place":"Ulm"}"# + "\n"),
    ])
  func forms(format: Logger.Format, toJournal: Bool, line: String) {
    #expect(logged(format: format, toJournal: toJournal) { $0.warning("it rains", ["place": "Ulm"]) } == [line])
  }

  @Test("each level has its priority of syslog(3)")
  func priorities() {
    let lines = logged(toJournal: true) { log in
      for level in Logger.Level.allCases { log.log(level, "m") }
    }
    #expect(lines == ["<7>debug m\n", "<6>info m\n", "<4>warning m\n", "<3>error m\n"])
  }

  @Test(
    "with any value the line stays one line, and can be taken apart again",
    arguments: [
      ("plain", "plain"), ("", #""""#), ("a b", #""a b""#), ("a\nerror forged", #""a\nerror forged""#),
      (#"q"\"#, #""q\"\\""#), ("\u{1B}[31m", #""\u001b[31m""#), ("\u{85}\u{2028}", #""\u0085\u2028""#),
      ("\u{202E}evil", #""\u202eevil""#), ("Köln", #""Köln""#), ("\0", #""\u0000""#),
    ])
  func escapes(value: String, shown: String) {
    #expect(logged(toJournal: true) { $0.info("m", ["k": value]) } == ["<6>info m k=\(shown)\n"])
    let json = logged(format: .json, toJournal: true) { $0.info("m", ["k": value]) }
    #expect(json.allSatisfy { $0.count { $0.isNewline } == 1 })
  }

  @Test("what is below the level is not said; a reload changes level and form at once")
  func level() {
    let lines = logged(toJournal: true) { log in
      log.set(level: .warning, format: .text)
      log.info("quiet")
      log.warning("loud")
      log.set(level: .debug, format: .json)
      log.debug("all")
    }
    #expect(lines == ["<4>warning loud\n", #"<7>{"level":"debug","message":"all"}"# + "\n"])
  }

  @Test("a fault that repeats is said once, and again when it ends, with the count; each of them by itself")
  func faults() {
    let lines = logged(toJournal: true) { log in
      for _ in 0..<3 { log.fault("a", "a fails", ["cause": "x"]) }
      log.fault("b", "b fails", level: .error)
      #expect(log.errors() == ["b fails"] && log.errors(but: ["b"]).isEmpty)
      log.faultEnded("a", "a works")
      log.faultEnded("a", "a works")
      log.fault("a", "a fails")
    }
    #expect(
      lines == [
        "<4>warning a fails cause=x\n", "<3>error b fails\n", "<6>info a works times=3\n", "<4>warning a fails\n",
      ])
  }

  @Test("lines that nobody took are lost, and counted before the next one that is taken")
  func lost() {
    let book = Book()
    let log = Logger(toJournal: true, offer: book.offer)
    book.set(isOpen: false)
    for number in 0..<5 { log.info("\(number)") }
    book.set(isOpen: true)
    log.info("again")
    log.info("and on")
    #expect(
      book.lines == [
        "<4>warning log lines were lost: the reader did not take them times=5\n", "<6>info again\n", "<6>info and on\n",
      ])
  }

  // MARK: A level for a while

  @Test("a borrowed level holds until its time, over reloads, and never hides a line") func borrowedLevel() {
    let (book, time) = (Book(), ManualTime())
    let log = Logger(level: .warning, toJournal: false, time: time, offer: book.offer)
    func written() -> [String] {
      let before = book.lines.count
      for level in Logger.Level.allCases { log.log(level, "m") }
      let names = book.lines[before...].map { line in line.split(separator: " ").map(String.init)[1] }
      for level in Logger.Level.allCases { #expect(log.writes(level) == names.contains(level.rawValue)) }
      return names
    }
    log.borrow(.info, for: .seconds(60))
    #expect(written() == ["info", "warning", "error"])
    // A reload says the same, or less, or more.
    log.set(level: .warning, format: .text)
    #expect(written() == ["info", "warning", "error"])
    log.set(level: .error, format: .text)
    #expect(written() == ["info", "warning", "error"])
    log.set(level: .debug, format: .text)
    #expect(written() == ["debug", "info", "warning", "error"])
    log.set(level: .error, format: .text)
    time.advance(by: .seconds(59))
    #expect(written() == ["info", "warning", "error"])
    time.advance(by: .seconds(1))
    #expect(written() == ["error"])
    // A later one replaces an earlier one, and one above the level hides nothing.
    log.borrow(.debug, for: .seconds(60))
    log.borrow(.warning, for: .seconds(60))
    #expect(written() == ["warning", "error"])
    log.set(level: .info, format: .text)
    #expect(written() == ["info", "warning", "error"])
  }
}

/// The descriptor that lines go to: a pipe whose other end the test holds.
@Suite struct LogDescriptorTests {
  private struct Ends: ~Copyable {
    let reader: Int32, writer: Int32
    init() {
      var ends: [Int32] = [-1, -1]
      #expect(pipe(&ends) == 0)
      (reader, writer) = (ends[0], ends[1])
    }
    deinit { for end in [reader, writer] { close(end) } }

    func read() -> String {
      var bytes = [UInt8](repeating: 0, count: 1 << 20)
      let count = Glibc.read(reader, &bytes, bytes.count)
      return String(decoding: bytes[..<max(0, count)], as: UTF8.self)
    }
  }

  @Test("a reader that has stopped reading keeps nobody waiting; what it reads later are whole lines")
  func blocked() {
    let ends = Ends()
    let log = LogDescriptor(ends.writer)
    let line = String(repeating: "x", count: 999) + "\n"
    var taken = 0
    while log.offer(line) { taken += 1 }  // would never end, nor return, if it waited
    #expect(taken > 10 && !log.offer(line))
    #expect(ends.read() == String(repeating: line, count: taken))
    #expect(log.offer("next\n") && ends.read() == "next\n")
  }

  @Test("a line that was cut since no more was taken ends there, and the next one begins a line")
  func cut() throws {
    let ends = Ends()
    let log = LogDescriptor(ends.writer)
    #expect(!log.offer(String(repeating: "x", count: 1 << 20) + "\n"))
    let first = ends.read()
    #expect(first.count >= Int(PIPE_BUF) && first.allSatisfy { $0 == "x" })
    #expect(log.offer("next\n") && ends.read() == "\nnext\n")
  }

  @Test("a descriptor that is closed, or that nobody reads any more, is no reason to end")
  func closed() {
    signal(SIGPIPE, SIG_IGN)  // as StandardStreams.prepare() has it for the programs
    #expect(!LogDescriptor(-1).offer("x\n"))
    var ends: [Int32] = [-1, -1]
    #expect(pipe(&ends) == 0)
    close(ends[0])
    #expect(!LogDescriptor(ends[1]).offer("x\n"))
    close(ends[1])
  }
}
