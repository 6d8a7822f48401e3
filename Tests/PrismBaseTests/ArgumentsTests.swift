import PrismBase
import Testing

@Suite("The words of a command line")
struct ArgumentsTests {
  private static let options = [
    ArgumentOption("--config", "PATH", "the file"),
    ArgumentOption("--watch", "SECONDS", "again and again", presence: .attached),
    ArgumentOption("--dev", "DIR", "for trying it", presence: .optional),
    ArgumentOption("--tag", "TAG", "a tag", isRepeatable: true), ArgumentOption("--json", nil, "as JSON"),
    ArgumentOption("--help", nil, "this text", shortName: "-h"),
  ]

  private static func read(_ words: String) throws(ArgumentFault) -> Arguments {
    try Arguments(words.split(separator: " ").map(String.init), options: options, last: "--help")
  }

  @Test(
    "an option has its value behind =, or in the next word if its presence allows that",
    arguments: [
      ("--config a", "--config=a", ""), ("--config=a=b", "--config=a=b", ""),
      ("--config --json", "--config=--json", ""), ("--watch 5", "--watch", "5"), ("--watch=5", "--watch=5", ""),
      ("--dev", "--dev", ""), ("--dev x", "--dev=x", ""), ("--dev --json", "--dev --json", ""),
      ("--dev=x y", "--dev=x", "y"), ("a --json b", "--json", "a b"), ("- -5", "", "- -5"),
      ("--json -- --json -h", "--json", "--json -h"), ("-h --nonsense", "--help", ""), ("--help x", "--help", ""),
      ("--tag a --tag=b", "--tag=a --tag=b", ""), ("--json --json", "--json --json", ""),
    ])
  func reads(words: String, options: String, operands: String) throws {
    let arguments = try Self.read(words)
    let given = arguments.given.map { $0.name + ($0.value.map { "=" + $0 } ?? "") }
    #expect(given.joined(separator: " ") == options)
    #expect(arguments.operands.joined(separator: " ") == operands)
  }

  @Test(
    "a fault names the word, and the option that was probably meant",
    arguments: [
      ("--confg x", "there is no option `--confg`; did you mean `--config`?"),
      ("--nothing=1", "there is no option `--nothing`"), ("--config", "`--config` needs a value: the file"),
      ("--json=1", "`--json` takes no value"), ("--config a --config a", "`--config` is given twice; give it once"),
      ("--watch=5 --watch=6", "`--watch` is given twice; give it once"),
    ])
  func faults(words: String, text: String) {
    #expect { try Self.read(words) } throws: { ($0 as? ArgumentFault)?.description == text }
  }

  @Test(
    "an empty word is refused, unless it is another program's: a variable that is not set would mean everything",
    arguments: [
      (["--config", ""], "the value of `--config` is empty; is a variable not set?"),
      (["--tag="], "the value of `--tag` is empty; is a variable not set?"),
      (["a", "", "b"], "a word is empty; is a variable not set?"), (["--", ""], nil),
    ])
  func empty(words: [String], text: String?) {
    let fault = #expect(
      throws: (any Error).self,
      performing: { () throws -> Void in
        _ = try Arguments(words, options: Self.options)
        if text == nil { throw ArgumentFault.unexpectedWord("taken") }
      })
    #expect((fault as? ArgumentFault)?.description == text ?? "`taken` is not understood")
  }

  @Test("help shows each option once, its text from one column on") func help() {
    let options = Self.options.dropLast() + [ArgumentOption("--reader-token-file", "FILE", "one\ntwo")]
    #expect(
      ArgumentOption.help(Array(options), column: 20) == """
          --config PATH     the file
          --watch[=SECONDS] again and again
          --dev [DIR]       for trying it
          --tag TAG         a tag
          --json            as JSON
          --reader-token-file FILE
                            one
                            two
        """)
  }
}
