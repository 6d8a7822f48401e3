extension Command {
  static let completion = Command(
    words: ["completion"], summary: "print a shell's completion of these commands",
    operands: ["bash|zsh|fish"], sockets: [], example: "source <(prismctl completion bash)"
  ) { invocation throws(Failure) in
    let table = CompletionTable(commands: commands)
    switch invocation.operands[0] {
    case "bash": print(table.bash)
    case "zsh": print(table.zsh)
    case "fish": print(table.fish)
    case let shell: throw .usage("there is no completion for `\(shell)`, only for bash, zsh and fish")
    }
  }
}
