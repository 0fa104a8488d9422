# SPDX-License-Identifier: Apache-2.0
# Completion of fxserve for bash. Commands, flags and their values are read from the program's own
# help, so that there is no list here that could be out of date.

_fxserve_words() # WORD...: those that begin with what stands at the cursor
{
        mapfile -t COMPREPLY < <(compgen -W "$*" -- "$current")
}

_fxserve_files()
{
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

_fxserve()
{
        local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
        local command=serve help commands value
        COMPREPLY=()
        help=$("$program" --help 2>/dev/null) || return
        commands=$(sed -n 's/^  fxserve \([a-z][a-z]*\) .*/\1/p' <<<"$help")
        if [ "$COMP_CWORD" -gt 1 ] && grep -qx -e "${COMP_WORDS[1]}" <<<"$commands"; then
                command=${COMP_WORDS[1]}
        fi
        if [ "$command" = serve ]; then
                help=$(grep '^  -' <<<"$help")
        else
                help=$("$program" help "$command" 2>/dev/null)
        fi

        # The flag before the cursor, and the word that its help shows for a value; flags without one have none.
        if [[ $before == -* ]]; then
                value=$(grep -o -e "[[ ]${before} [^] ]*" <<<"$help" | head -n 1)
                value=${value#* }
                value=${value#"$before" }
        fi
        case $value in
         auto\|* | graph\|* | text\|* | eager\|*) _fxserve_words "${value//|/ }" && return ;;
        *FILE* | FOLDER* | *.safetensors | *.npy) _fxserve_files && return ;;
        [A-Z]*) return ;;
        esac

        if [[ $current == -* ]]; then
                _fxserve_words "$(grep -o -e '[[ ]--*[a-z][a-z-]*' <<<"$help" | tr -d '[ ' | sort -u)"
        elif [ "$command" = help ] || [ "$COMP_CWORD" = 1 ]; then
                _fxserve_words "$commands"
        fi
        if [ "$command" != help ] && [ ${#COMPREPLY[@]} = 0 ]; then
                _fxserve_files
        fi
}

complete -F _fxserve fxserve
